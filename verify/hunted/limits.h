// Functions that remove from random steps (verify/programs/recipe.h) what a scheduler does not
// support, for HuntedScheduler::limit and features.cpp. They only change the recipe, and applying
// one twice is the same as applying it once.
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

// Removes writes to saved tensors. PyTorch reports such a write as an error, but the hooks of some
// schedulers let it pass unnoticed.
inline void without_late_writes(Recipe& recipe) {
  if (recipe.failure == StepFailure::kSavedWritten) without_failures(recipe);
}

inline void without_side_streams(Recipe& recipe) {
  without(recipe, {LayerKind::kSideStream});
  without_segment_bits(recipe, kOwnStream);
}

// Changes the step so that every saved tensor is unpacked once.
inline void one_unpack(Recipe& recipe) {
  recipe.retain = false;
  recipe.derivatives = 1;
  for (Layer& layer : recipe.layers) {
    if (layer.extra >= Extra::kInnerBackward) layer.extra = Extra::kNothing;
  }
}

// Changes the step so that every saved tensor is unpacked. (A checkpoint does not unpack its input
// if everything that it would recompute is excluded from hooks.)
inline void without_dead_branches(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kWrittenBetween});
  if (recipe.segments) without(recipe, {LayerKind::kExcluded});
}

// Changes the step so that no forward runs before the backward of the earlier one.
inline void in_turn(Recipe& recipe) { recipe.order = MicrobatchOrder::kFbfb; }

// Gives all tensors one size, so that freed bytes are soon reused.
inline void one_size(Recipe& recipe) {
  for (Layer& layer : recipe.layers) layer.size = recipe.layers.front().size;
}

// Adds dropout, so that the forwards differ. If they were equal, no oracle would see that the
// tensors of one forward came back in the backward of another.
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
