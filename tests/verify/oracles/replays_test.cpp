#include "verify/oracles/replays.h"

#include <gtest/gtest.h>

#include "verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// A backward in a span saves, for a graph of the gradient, what the span made for it again. That is
// on a storage of its own, so the span passes it on: the second derivative needs none of its calls
// for it.
TEST(Replays, WhatCameBackIsNotTheSpansToMakeAgain) {
  Recipe recipe;
  recipe.segments = true;
  recipe.layers.resize(2);
  recipe.layers[0].extra = Extra::kInnerCreates;
  recipe.layers[0].opens = 1;
  recipe.layers[0].segment = kSpanBit;
  recipe.layers[1].kind = LayerKind::kEscape;
  recipe.derivatives = 2;
  EXPECT_EQ(expected_replays(make_program(recipe), {}).again, 8);
}

// Of two layers in a span the first saves what it makes, and so does the second: so the first's
// call is left at the end, with what it read from outside, and runs again once. Nothing that is
// saved needs the second's.
TEST(Replays, CountsWhatASpanHasAndDoes) {
  Recipe recipe;
  recipe.segments = true;
  recipe.layers.resize(3);
  recipe.layers[0].kind = LayerKind::kSavesOutput;
  recipe.layers[0].opens = 1;
  recipe.layers[0].segment = kSpanBit;
  recipe.layers[1].closes = 1;
  const ReplayCounts counts = expected_replays(make_program(recipe), {});
  EXPECT_EQ(counts.again, 1);
  EXPECT_EQ(counts.spans.spans, 1);
  EXPECT_EQ(counts.spans.calls, 2);
  EXPECT_EQ(counts.spans.calls_left, 1);
  EXPECT_EQ(counts.spans.saved, 2);
  EXPECT_EQ(counts.spans.passed_on, 3) << "the input of the first, and the weights of both";
  EXPECT_EQ(counts.spans.held, 2) << "that input, and the first's weight";
  EXPECT_EQ(counts.spans.replays, 1);
}

}  // namespace
}  // namespace ferry::verify
