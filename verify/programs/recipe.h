// A recipe: the few small numbers that a random training step is made of. Recipes are drawn, shrunk
// and written down; random_program.h makes their programs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/microbatches.h"
#include "sim/choices/draws.h"

namespace ferry::verify {

using choices::Draws;

// The numbers of each enumeration stand in replay lines: new ones come last, or codec.cpp's version
// changes.
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

// Something that a layer does beside its kind.
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

inline constexpr int kMicrobatchOrders = 3;

// How a step before the recipe's own fails.
enum class StepFailure : int {
  kNone,
  kForwardRaises,
  kBackwardRaises,
  kSavedWritten,
  kRecomputeRaises,
  kRecomputeSavesMore,
};
inline constexpr int kStepFailures = static_cast<int>(StepFailure::kRecomputeSavesMore) + 1;
// Whether a recompute fails where there is one. A run that recomputes nothing has no error then.
constexpr bool fails_again(StepFailure failure) { return failure >= StepFailure::kRecomputeRaises; }
inline constexpr std::string_view kRecomputeFails = "a recompute fails";

// As coverage and reports say them; empty where there is nothing to say.
std::string_view name(LayerKind kind);
std::string_view name(Extra extra);
std::string_view name(MicrobatchOrder order);
std::string_view name(StepFailure failure);

// Ways in which a segment is not the usual one, as bits.
enum SegmentBits : int {
  kNoEarlyStop = 1,
  kNoRandomState = 2,
  kNoCheck = 4,
  kOwnStream = 8,
  kReentrantBit = 16,
  kSpanBit = 32,  // its operators run again, one by one, and not its function
};

// Whether the segments that begin with the layer are of the reentrant variant, which a span is not.
constexpr bool is_reentrant(int segment) {
  return (segment & kReentrantBit) != 0 && (segment & kSpanBit) == 0;
}

struct Layer {
  LayerKind kind = LayerKind::kLinear;
  int size = 0;       // of its output: an index into kSizes
  bool hold = false;  // its input stays alive until the end of forward
  bool skip = false;  // it reads, and saves, the latest held activation too
  Extra extra = Extra::kNothing;
  int opens = 0;        // how many segments begin with it
  int closes = 0;       // how many end with it
  int segment = 0;      // the SegmentBits of those that begin
  bool frozen = false;  // its weight has no gradient
  bool operator==(const Layer&) const = default;
};

struct Recipe {
  std::vector<Layer> layers;
  int microbatches = 1;
  MicrobatchOrder order = MicrobatchOrder::kFbfb;
  bool retain = false;     // each graph goes backward twice
  int derivatives = 1;     // the step ends with a derivative of this order, if it is above 1
  int differentiated = 0;  // that derivative is by this layer's weight
  StepFailure failure = StepFailure::kNone;
  int failing_layer = 0;
  bool move = false;      // a parameter moves to other storage
  bool segments = false;  // false: no layer has an extra or opens a segment
  bool whole = false;     // each forward is one segment, and so is each function of a gradient
  bool embeds = true;     // the first layer's input has a gradient
  int sequence = 0;  // its layers are a chain that is cut into so many segments; 0: they are not
  // Not drawn: what side streams read is in part protected by the program's own later wait alone.
  // (It does not come to that where it fails.)
  bool waits_late = false;
  bool operator==(const Recipe&) const = default;
};

// A segment of a chain that is a checkpoint: of layers [begin, end).
struct ChainSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ChainSegment&) const = default;
};
// Returns the recipe with these segments, in the place of those that its layers begin and end.
Recipe in_segments(Recipe recipe, const std::vector<ChainSegment>& segments);

// Visits each field but the layers with the values that it may have, [first, end). What writes
// recipes down, reads them and makes them smaller is written with it.
template <class R, class Visit>
void visit_fields(R& recipe, Visit&& visit) {
  visit(recipe.microbatches, 1, 4);
  visit(recipe.order, 0, kMicrobatchOrders);
  visit(recipe.retain, 0, 2);
  visit(recipe.derivatives, 1, 4);
  visit(recipe.differentiated, 0, kMostLayers);
  visit(recipe.failure, 0, kStepFailures);
  visit(recipe.failing_layer, 0, kMostLayers);
  visit(recipe.move, 0, 2);
  visit(recipe.segments, 0, 2);
  visit(recipe.whole, 0, 2);
  visit(recipe.embeds, 0, 2);
  visit(recipe.sequence, 0, kMostLayers + 1);
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
  visit(layer.segment, 0, 64);
  visit(layer.frozen, 0, 2);
}

// Small programs have about 150 operations on streams. Of mixed ones, one in twelve is large: it
// has about 1500.
enum class Sizes : std::uint8_t { kMixed, kSmall };

// Without spans, recomputes that fail and chains: these are the core's alone to run.
Recipe draw_recipe(Draws& draws, Sizes sizes = Sizes::kMixed);
// Makes some segments spans, and some recomputes fail.
void draw_repeats(Draws& draws, Recipe& recipe);
// Makes some recipes a chain.
void draw_sequence(Draws& draws, Recipe& recipe);
// Freezes layers of some recipes: the first few, or any. Something in them has a gradient.
void draw_frozen(Draws& draws, Recipe& recipe);

}  // namespace ferry::verify
