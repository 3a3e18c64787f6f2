#include "sim/verify/programs/recipe.h"

#include <algorithm>

namespace ferry::verify {
namespace {

Layer draw_layer(Draws& draws) {
  Layer layer;
  layer.kind = draws.in(0, kLayerKinds);
  layer.size = draws.in(0, 4);
  layer.hold = draws.one_in(2);
  layer.skip = draws.one_in(2);
  layer.extra = draws.few(10, kExtras);
  layer.opens = draws.few(6, 3);
  layer.closes = draws.few(5, 3);
  layer.segment = draws.in(0, 32);
  return layer;
}

}  // namespace

Recipe draw_recipe(Draws& draws, Sizes sizes) {
  // Most are small: many are run in the time of a large one, and most faults need little.
  const bool small = !draws.one_in(12) || sizes == Sizes::kSmall;
  Recipe recipe;
  recipe.layers.resize(static_cast<std::size_t>(draws.in(1, small ? 3 : kMostLayers + 1)));
  for (Layer& layer : recipe.layers) layer = draw_layer(draws);
  recipe.microbatches = small ? draws.few(6, 2) + 1 : draws.in(1, 4);
  recipe.order = draws.in(0, 3);
  recipe.retain = draws.one_in(small ? 8 : 2);
  // Else three in five: no more than gradients.
  recipe.derivatives = small ? draws.few(16, 4) : draws.in(-1, 4);
  recipe.derivatives = std::max(recipe.derivatives, 1);
  recipe.differentiated = draws.in(0, kMostLayers);
  recipe.failure = draws.few(10, 4);
  recipe.failing_layer = draws.in(0, kMostLayers);
  recipe.move = draws.one_in(2);
  recipe.segments = draws.one_in(3);
  recipe.whole = draws.one_in(2);
  recipe.embeds = !draws.one_in(4);
  return recipe;
}

}  // namespace ferry::verify
