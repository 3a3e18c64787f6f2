// Selective checkpoints and chains of segments are judged.
#include "verify/trials/chosen_checkpoints.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/verify/trials/verdicts.h"
#include "verify/oracles/cuts.h"
#include "verify/trials/try_core.h"

namespace ferry::verify {
namespace {

TEST(Cuts, TheLastSegmentOfAChainIsNoCheckpoint) {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(chain_checkpoints(7, 3), (Pairs{{0, 2}, {2, 4}}));
  EXPECT_EQ(chain_checkpoints(4, 1), Pairs());
}

// Three layers in a segment, of which the second is written in place.
Trial selective_trial() {
  Trial trial;
  trial.recipe.segments = trial.selective = true;
  trial.recipe.layers.resize(3);
  trial.recipe.layers.front().opens = 1;
  trial.recipe.layers.back().closes = 1;
  return trial;  // which saves what every op makes
}

TEST(ChosenCheckpoints, AnOpThatIsKeptRunsOnce) {
  const Trial trial = selective_trial();
  EXPECT_EQ(words(try_core(trial)), "");
  EXPECT_EQ(words(try_core(trial, without(Rule::kKeepOutputs))),
            "count: linear ran 5 times, not 3");
}

TEST(ChosenCheckpoints, AKeptTensorThatWasWrittenIsRefused) {
  Trial trial = selective_trial();
  trial.recipe.layers[1].kind = LayerKind::kInPlace;
  EXPECT_EQ(words(try_core(trial)), "");
  EXPECT_EQ(words(try_core(trial, without(Rule::kCheckOutputs))),
            "error: a kept tensor was written: 0 backwards raise the error, not 1");
}

TEST(ChosenCheckpoints, TheEndOfAChainRunsOnce) {
  Trial trial;
  trial.recipe.layers.resize(5);
  trial.recipe.sequence = 2;
  EXPECT_EQ(words(try_core(trial)), "");
  EXPECT_EQ(words(try_core(trial, without(Rule::kLastPlain))).substr(0, 6), "count:");
}

}  // namespace
}  // namespace ferry::verify
