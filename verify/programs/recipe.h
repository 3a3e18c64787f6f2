// A recipe describes a random training step with a few small numbers. Recipes are generated, shrunk
// and written in replay lines; random_program.h makes programs from them.
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

// Replay lines contain the numbers of these enumerations. Add new ones at the end, or change the
// version in codec.cpp.
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

// Something that a layer does in addition to its kind.
enum class Extra : int {
  kNothing,
  kDropout,
  kAmbient,
  kInnerBackward,  // forward differentiates a function of the layer's output, by that output
  kInnerRetained,  // the same by the layer's weight, with retain_graph
  kInnerCreates,   // the same by the layer's weight, with create_graph
};
inline constexpr int kExtras = static_cast<int>(Extra::kInnerCreates) + 1;
inline constexpr int kSegmentDepth = 4;

inline constexpr int kMicrobatchOrders = 3;

// How the step before the recipe's own step fails.
enum class StepFailure : int {
  kNone,
  kForwardRaises,
  kBackwardRaises,
  kSavedWritten,
  kRecomputeRaises,
  kRecomputeSavesMore,
};
inline constexpr int kStepFailures = static_cast<int>(StepFailure::kRecomputeSavesMore) + 1;
// Returns true if a recompute fails. Then a run that recomputes nothing has no error.
constexpr bool fails_again(StepFailure failure) { return failure >= StepFailure::kRecomputeRaises; }
inline constexpr std::string_view kRecomputeFails = "a recompute fails";

// Names for coverage and reports; empty if there is nothing to mention.
std::string_view name(LayerKind kind);
std::string_view name(Extra extra);
std::string_view name(MicrobatchOrder order);
std::string_view name(StepFailure failure);

// Bits that say how a segment differs from the usual one.
enum SegmentBits : int {
  kNoEarlyStop = 1,
  kNoRandomState = 2,
  kNoCheck = 4,
  kOwnStream = 8,
  kReentrantBit = 16,
  kSpanBit = 32,  // a span: its operators are recomputed one by one, not its function
};

// Returns true if the segments that begin with the layer are reentrant checkpoints. A span never
// is.
constexpr bool is_reentrant(int segment) {
  return (segment & kReentrantBit) != 0 && (segment & kSpanBit) == 0;
}

struct Layer {
  LayerKind kind = LayerKind::kLinear;
  int size = 0;       // index into kSizes, for its output
  bool hold = false;  // its input stays alive until the end of forward
  bool skip = false;  // it also reads and saves the latest held activation
  Extra extra = Extra::kNothing;
  int opens = 0;        // number of segments that begin with it
  int closes = 0;       // number of segments that end with it
  int segment = 0;      // SegmentBits of the segments that begin with it
  bool frozen = false;  // its weight has no gradient
  bool operator==(const Layer&) const = default;
};

struct Recipe {
  std::vector<Layer> layers;
  int microbatches = 1;
  MicrobatchOrder order = MicrobatchOrder::kFbfb;
  bool retain = false;     // each graph runs backward twice
  int derivatives = 1;     // above 1: the step ends with a derivative of this order
  int differentiated = 0;  // the layer whose weight that derivative is taken by
  StepFailure failure = StepFailure::kNone;
  int failing_layer = 0;
  bool move = false;      // a parameter moves to another storage
  bool segments = false;  // false: no layer has an extra or opens a segment
  bool whole = false;     // each forward and each function of a gradient is one segment
  bool embeds = true;     // the first layer's input has a gradient
  int sequence = 0;       // the layers are a chain, cut into this many segments; 0: they are not
  // Not random: trials of the core set it. Side streams then also read tensors that only a later
  // wait of the program protects. A step that fails does not reach this wait.
  bool waits_late = false;
  bool operator==(const Recipe&) const = default;
};

// A checkpointed segment of a chain, with layers [begin, end).
struct ChainSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ChainSegment&) const = default;
};
// Returns the recipe with these segments instead of those that its layers begin and end.
Recipe in_segments(Recipe recipe, const std::vector<ChainSegment>& segments);

// Calls visit(field, first, end) for each field except the layers; [first, end) are its valid
// values. Encoding, decoding and shrinking of recipes use these functions.
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

// Small programs have about 150 stream operations. One mixed program in twelve is large and has
// about 1500.
enum class Sizes : std::uint8_t { kMixed, kSmall };

// Makes a recipe without spans, chains and failing recomputes, which only the core supports.
Recipe draw_recipe(Draws& draws, Sizes sizes = Sizes::kMixed);
// Makes some segments spans, and some recomputes fail.
void draw_repeats(Draws& draws, Recipe& recipe);
// Makes some recipes a chain.
void draw_sequence(Draws& draws, Recipe& recipe);
// Freezes the first few layers, or any layers, of some recipes. Some tensor still has a gradient.
void draw_frozen(Draws& draws, Recipe& recipe);

}  // namespace ferry::verify
