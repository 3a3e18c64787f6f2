#include "sim/verify/oracles/replays.h"

#include <gtest/gtest.h>

#include "sim/verify/programs/random_program.h"

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

}  // namespace
}  // namespace ferry::verify
