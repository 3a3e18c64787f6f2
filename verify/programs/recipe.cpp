#include "verify/programs/recipe.h"

#include <algorithm>
#include <array>

namespace ferry::verify {
namespace {

template <class Enum, std::size_t kCount>
std::string_view at(const std::array<std::string_view, kCount>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

Layer draw_layer(Draws& draws) {
  Layer layer;
  layer.kind = static_cast<LayerKind>(draws.in(0, kLayerKinds));
  layer.size = draws.in(0, 4);
  layer.hold = draws.one_in(2);
  layer.skip = draws.one_in(2);
  layer.extra = static_cast<Extra>(draws.few(10, kExtras));
  layer.opens = draws.few(6, 3);
  layer.closes = draws.few(5, 3);
  layer.segment = draws.in(0, kSpanBit);
  return layer;
}

}  // namespace

std::string_view name(LayerKind kind) {
  static constexpr std::array<std::string_view, kLayerKinds> kNames = {
      "linear",   "saves its output", "saves a view",    "saves twice",
      "in place", "dead branch",      "escaping view",   "small view",
      "excluded", "side stream",      "nested backward", "written between"};
  static_assert(!kNames.back().empty());
  return at(kNames, kind);
}
std::string_view name(Extra extra) {
  static constexpr std::array<std::string_view, kExtras> kNames = {
      "",
      "random numbers",
      "ambient state",
      "backward in forward",
      "retained in forward",
      "graph of a gradient in forward"};
  static_assert(!kNames.back().empty());
  return at(kNames, extra);
}
std::string_view name(MicrobatchOrder order) {
  static constexpr std::array<std::string_view, kMicrobatchOrders> kNames = {"FBFB", "FFBB",
                                                                             "1F1B"};
  static_assert(!kNames.back().empty());
  return at(kNames, order);
}
std::string_view name(StepFailure failure) {
  static constexpr std::array<std::string_view, kStepFailures> kNames = {"",
                                                                         "forward raises",
                                                                         "backward raises",
                                                                         "saved tensor written",
                                                                         "recompute raises",
                                                                         "recompute saves more"};
  static_assert(!kNames.back().empty());
  return at(kNames, failure);
}

Recipe draw_recipe(Draws& draws, Sizes sizes) {
  // Most recipes are small: many small ones run in the time of a large one, and most faults show in
  // a small one.
  const bool small = !draws.one_in(12) || sizes == Sizes::kSmall;
  Recipe recipe;
  recipe.layers.resize(static_cast<std::size_t>(draws.in(1, small ? 3 : kMostLayers + 1)));
  for (Layer& layer : recipe.layers) layer = draw_layer(draws);
  recipe.microbatches = small ? draws.few(6, 2) + 1 : draws.in(1, 4);
  recipe.order = static_cast<MicrobatchOrder>(draws.in(0, kMicrobatchOrders));
  recipe.retain = draws.one_in(small ? 8 : 2);
  // Negative numbers, 0 and 1 all mean that there is only a first derivative: three large recipes
  // in five.
  recipe.derivatives = small ? draws.few(16, 4) : draws.in(-1, 4);
  recipe.derivatives = std::max(recipe.derivatives, 1);
  recipe.differentiated = draws.in(0, kMostLayers);
  recipe.failure =
      static_cast<StepFailure>(draws.few(10, static_cast<int>(StepFailure::kRecomputeRaises)));
  recipe.failing_layer = draws.in(0, kMostLayers);
  recipe.move = draws.one_in(2);
  recipe.segments = draws.one_in(3);
  recipe.whole = draws.one_in(2);
  recipe.embeds = !draws.one_in(4);
  return recipe;
}

void draw_repeats(Draws& draws, Recipe& recipe) {
  for (Layer& layer : recipe.layers) {
    if (draws.one_in(3)) layer.segment |= kSpanBit;
  }
  const bool raises = draws.one_in(2);
  if (!draws.one_in(16) || recipe.failure != StepFailure::kNone) return;
  recipe.failure = raises ? StepFailure::kRecomputeRaises : StepFailure::kRecomputeSavesMore;
}

void draw_sequence(Draws& draws, Recipe& recipe) {
  if (draws.one_in(8)) recipe.sequence = draws.in(1, static_cast<int>(recipe.layers.size()) + 1);
}

void draw_frozen(Draws& draws, Recipe& recipe) {
  if (!draws.one_in(4)) return;
  const int count = static_cast<int>(recipe.layers.size());
  const bool first_few = draws.one_in(2);
  const int first = draws.in(1, count + 1);
  for (int i = 0; i < count; ++i) {
    recipe.layers[static_cast<std::size_t>(i)].frozen = first_few ? i < first : draws.one_in(2);
  }
  const auto frozen = [](const Layer& layer) { return layer.frozen; };
  if (!recipe.embeds && std::all_of(recipe.layers.begin(), recipe.layers.end(), frozen)) {
    recipe.layers.back().frozen = false;
  }
}

Recipe in_segments(Recipe recipe, const std::vector<ChainSegment>& segments) {
  recipe.segments = true;
  recipe.whole = false;
  for (Layer& layer : recipe.layers) layer.opens = layer.closes = 0;
  for (const ChainSegment& segment : segments) {
    recipe.layers[segment.begin].opens = 1;
    recipe.layers[segment.begin].segment &= ~kSpanBit;
    recipe.layers[segment.end - 1].closes = 1;
  }
  return recipe;
}

}  // namespace ferry::verify
