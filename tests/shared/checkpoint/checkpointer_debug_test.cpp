// Debug mode, and what the thread's guards override.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/shared/checkpoint/told.h"

namespace ferry {
namespace {

using test::ContextGuard;
using test::error_of;
using test::ToldRig;
using test::Values;

class CheckpointDebugTest : public ::testing::Test {
 protected:
  // Forward runs `a` and `b`, and a recompute `a` and `other`, which saves nothing. Returns the
  // error of its backward.
  std::string error(bool debug) {
    CoreCheckpointOptions options;
    options.debug = debug;
    const Values out = rig.run({rig.rig.leaf()}, options, [this](const Values& in) {
      const sim::Value x = rig.layer("a", in[0]);
      if (!rig.here().recomputing) return Values{rig.layer("b", x)};
      if (rig.told.ops) rig.told.ops->push_back("other");
      return Values{x};
    });
    return error_of([&] { rig.rig.backward(out); });
  }
  void guard(std::optional<bool> debug, std::optional<bool> early_stop = std::nullopt) {
    CheckpointContext context;
    context.debug = debug;
    context.early_stop = early_stop;
    guard_.emplace(rig.autograd, context);
  }

  const std::string plain_ = checkpoint_text::fewer(2, 1);
  const std::string debugged_ = checkpoint_text::debug(plain_, {"a", "b"}, {"a", "other"});
  ToldRig rig;

 private:
  std::optional<ContextGuard> guard_;
};

TEST_F(CheckpointDebugTest, AnErrorListsTheOpsOfForwardAndOfTheRecompute) {
  EXPECT_EQ(error(false), plain_);
  EXPECT_EQ(error(true), debugged_);
}

TEST_F(CheckpointDebugTest, TheGuardSwitchesItOn) {
  guard(true);
  EXPECT_EQ(error(false), debugged_);
}

TEST_F(CheckpointDebugTest, TheGuardSwitchesItOff) {
  guard(false);
  EXPECT_EQ(error(true), plain_);
}

// A log of ops slows each of them.
TEST_F(CheckpointDebugTest, WithoutItNoOpsAreLogged) {
  error(false);
  EXPECT_EQ(rig.told.logs, 0);
  EXPECT_EQ(rig.told.lists, 0);
  EXPECT_EQ(rig.told.ops, nullptr);
}

TEST_F(CheckpointDebugTest, ItIsNotForFunctionsWithContextsOfTheirOwn) {
  CoreCheckpointOptions options;
  options.debug = true;
  int contexts = 0;
  int runs = 0;
  options.context_fn = [&contexts] {
    ++contexts;
    return CheckpointContexts{};
  };
  const auto call = [&] {
    rig.run({rig.rig.leaf()}, options, [&runs](Values in) {
      ++runs;
      return in;
    });
  };
  EXPECT_THROW(call(), ValueError);
  EXPECT_EQ(error_of(call), "debug=True is incompatible with non-default context_fn");
  EXPECT_EQ(contexts, 0);
  EXPECT_EQ(runs, 0);
  options.debug = false;
  call();
  EXPECT_EQ(contexts, 1);
}

TEST_F(CheckpointDebugTest, TheGuardsEarlyStopIsTheOneThatHolds) {
  for (const bool guarded : {true, false}) {
    for (const bool option : {true, false}) {
      guard(std::nullopt, guarded);
      CoreCheckpointOptions options;
      options.early_stop = option;
      const auto before = rig.statistics().stopped_early;
      rig.rig.backward(rig.run({rig.rig.leaf()}, options, [this](const Values& in) {
        return Values{rig.layer("b", rig.layer("a", in[0]))};
      }));
      EXPECT_EQ(rig.statistics().stopped_early - before, guarded ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace ferry
