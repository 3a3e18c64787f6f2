#include "verify/oracles/stage_states.h"

#include <gtest/gtest.h>

namespace ferry::verify {
namespace {

constexpr StageState kFirst{false, true, false, 5, 1}, kSecond{true, false, true, 5, 1};

std::string complaint_of(StageState first, StageState second, bool preserves = true) {
  StageStates states({true, 5, true, preserves});
  states.runs(0, 2, true, first);
  states.runs(0, 2, true, second);
  return states.complaint();
}

TEST(StageStates, ASecondRunFindsTheStateOfTheFirst) {
  EXPECT_EQ(complaint_of(kFirst, kSecond), "");
  StageState later = kSecond;
  later.random = 4;
  EXPECT_EQ(complaint_of(kFirst, later),
            "stage 1 recomputes micro-batch 2 with other random numbers");
  EXPECT_EQ(complaint_of(kFirst, later, false), "");
  EXPECT_EQ(complaint_of(kFirst, kSecond, false),
            "stage 1 recomputes micro-batch 2 with old random numbers");
  EXPECT_EQ(complaint_of(kFirst, kFirst), "stage 1 recomputes micro-batch 2 without grad mode");
}

TEST(StageStates, EachPartIsLookedAt) {
  StageState state = kFirst;
  state.ambient = 0;
  EXPECT_EQ(complaint_of(state, kSecond),
            "stage 1 runs micro-batch 2 without the caller's autocast");
  state = kFirst;
  state.grad_mode = true;
  EXPECT_EQ(complaint_of(state, kSecond), "stage 1 runs micro-batch 2 with grad mode");
  state = kFirst;
  state.checkpointing = false;
  EXPECT_EQ(complaint_of(state, kSecond), "stage 1 runs micro-batch 2 as if not checkpointed");
  state = kSecond;
  state.recomputing = false;
  EXPECT_EQ(complaint_of(kFirst, state), "stage 1 recomputes micro-batch 2 as if not recomputed");
}

}  // namespace
}  // namespace ferry::verify
