// What a random training step is made of: a few small numbers, which are drawn, shrunk and written
// down. random_program.h makes their programs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/choices/draws.h"

namespace ferry::verify {

using choices::Draws;

enum class LayerKind : int {
  kLinear,
  kSavesOutput,
  kSavesView,
  kSavesTwice,
  kInPlace,
  kDeadBranch,
  kEscape,
  kSmallView,
  kExcluded,
  kSideStream,
  kNested,
  kWrittenBetween,
};
inline constexpr int kLayerKinds = static_cast<int>(LayerKind::kWrittenBetween) + 1;
inline constexpr std::array<std::int64_t, 4> kSizes = {256, 1024, 40'000, 1'500'000};
inline constexpr int kMostLayers = 10;

// What comes with a layer, beside its kind.
enum class Extra : int {
  kNothing,
  kDropout,
  kAmbient,
  kInnerBackward,  // forward differentiates a function of the layer's output
  kInnerRetained,  // and that through the layer, which keeps its graph
  kInnerCreates,   // and makes a graph of that
};
inline constexpr int kExtras = static_cast<int>(Extra::kInnerCreates) + 1;
inline constexpr int kSegmentDepth = 4;

// Of a segment, as bits.
enum SegmentBits : int {
  kNoEarlyStop = 1,
  kNoRandomState = 2,
  kNoCheck = 4,
  kOwnStream = 8,
  kReentrantBit = 16,
};

struct Layer {
  int kind = 0;
  int size = 0;       // of its output, an index into kSizes
  bool hold = false;  // its input stays alive until the end of forward
  bool skip = false;  // it reads, and saves, the latest held activation too
  int extra = 0;
  int opens = 0;    // segments that begin with it
  int closes = 0;   // and that end with it
  int segment = 0;  // SegmentBits of those that begin
};

struct Recipe {
  std::vector<Layer> layers;
  int microbatches = 1;
  int order = 0;  // FBFB, FFBB, 1F1B
  bool retain = false;
  int derivatives = 1;     // at the end: to which order; all but the last make graphs
  int differentiated = 0;  // and by the weight of which layer
  int failure = 0;  // of a step before: none, forward, backward, a saved tensor written later
  int failing_layer = 0;
  bool move = false;
  bool segments = false;  // else no layer has an extra or opens a segment
  bool whole = false;     // each forward is a segment as a whole, and each function of a gradient
  bool embeds = true;     // what the first layer reads has a gradient
};

// Each field, with the values it may have: [first, end). For who writes recipes down, reads them,
// makes them smaller. The layers come last.
template <class R, class Visit>
void visit_fields(R& recipe, Visit&& visit) {
  visit(recipe.microbatches, 1, 4);
  visit(recipe.order, 0, 3);
  visit(recipe.retain, 0, 2);
  visit(recipe.derivatives, 1, 4);
  visit(recipe.differentiated, 0, kMostLayers);
  visit(recipe.failure, 0, 4);
  visit(recipe.failing_layer, 0, kMostLayers);
  visit(recipe.move, 0, 2);
  visit(recipe.segments, 0, 2);
  visit(recipe.whole, 0, 2);
  visit(recipe.embeds, 0, 2);
}
template <class L, class Visit>
void visit_layer(L& layer, Visit&& visit) {
  visit(layer.kind, 0, kLayerKinds);
  visit(layer.size, 0, static_cast<int>(kSizes.size()));
  visit(layer.hold, 0, 2);
  visit(layer.skip, 0, 2);
  visit(layer.extra, 0, kExtras);
  visit(layer.opens, 0, 3);
  visit(layer.closes, 0, 3);
  visit(layer.segment, 0, 32);
}

// Small: of about 150 operations on streams. Mixed: one in twelve is large, of about 1500.
enum class Sizes : std::uint8_t { kMixed, kSmall };

Recipe draw_recipe(Draws& draws, Sizes sizes = Sizes::kMixed);

}  // namespace ferry::verify
