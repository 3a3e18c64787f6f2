// Limits take out of random steps (verify/programs/recipe.h) what a scheduler was not made for.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "verify/programs/recipe.h"

namespace ferry::verify {

inline void without(Recipe& recipe, std::initializer_list<LayerKind> kinds,
                    LayerKind instead = LayerKind::kLinear) {
  for (Layer& layer : recipe.layers) {
    if (std::find(kinds.begin(), kinds.end(), layer.kind) != kinds.end()) layer.kind = instead;
  }
}

inline void without_segment_bits(Recipe& recipe, int bits) {
  for (Layer& layer : recipe.layers) layer.segment &= ~bits;
}

inline void without_failures(Recipe& recipe) { recipe.failure = StepFailure::kNone; }

// A saved tensor that is written in place is an error without hooks, and passes unseen with theirs.
inline void without_late_writes(Recipe& recipe) {
  if (recipe.failure == StepFailure::kSavedWritten) without_failures(recipe);
}

inline void without_side_streams(Recipe& recipe) {
  without(recipe, {LayerKind::kSideStream});
  without_segment_bits(recipe, kOwnStream);
}

// Every saved tensor is unpacked once.
inline void one_unpack(Recipe& recipe) {
  recipe.retain = false;
  recipe.derivatives = 1;
  for (Layer& layer : recipe.layers) {
    if (layer.extra >= Extra::kInnerBackward) layer.extra = Extra::kNothing;
  }
}

// Everything that is saved is unpacked. (Where all that a checkpoint would recompute is excluded
// from hooks, its input is not.)
inline void without_dead_branches(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kWrittenBetween});
  if (recipe.segments) without(recipe, {LayerKind::kExcluded});
}

// A backward follows its forward.
inline void in_turn(Recipe& recipe) { recipe.order = MicrobatchOrder::kFbfb; }

// All tensors have one size, so that bytes that were given back are soon given out again.
inline void one_size(Recipe& recipe) {
  for (Layer& layer : recipe.layers) layer.size = recipe.layers.front().size;
}

// Forwards differ: equal ones would hide that one's tensors came back to the other.
inline void draws_random_numbers(Recipe& recipe) {
  recipe.segments = true;
  without(recipe, {LayerKind::kExcluded});
  recipe.layers.front().extra = Extra::kDropout;
}

inline void without_segments(Recipe& recipe) {
  for (Layer& layer : recipe.layers) layer.opens = 0;
  recipe.whole = false;
}

}  // namespace ferry::verify
