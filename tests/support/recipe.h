// What a random training step is made of: a few small numbers. RapidCheck draws recipes and shrinks
// them; random_program.h makes their programs.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ferry::test {

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
};

// gen::inRange shrinks its range with the size: a fixed size keeps it whole.
inline rc::Gen<int> in_range(int first, int end) {
  return rc::gen::resize(100, rc::gen::inRange(first, end));
}

// Of [0, n) those below `end`, but for 0: that is the rest.
inline rc::Gen<int> few(int n, int end) {
  return rc::gen::map(in_range(0, n), [end](int drawn) { return drawn < end ? drawn : 0; });
}

inline rc::Gen<Recipe> any_recipe() {
  const auto layer = rc::gen::build<Layer>(
      rc::gen::set(&Layer::kind, in_range(0, kLayerKinds)),
      rc::gen::set(&Layer::size, in_range(0, 4)), rc::gen::set(&Layer::hold),
      rc::gen::set(&Layer::skip), rc::gen::set(&Layer::extra, few(10, kExtras)),
      rc::gen::set(&Layer::opens, few(6, 3)), rc::gen::set(&Layer::closes, few(5, 3)),
      rc::gen::set(&Layer::segment, in_range(0, 32)));
  return rc::gen::build<Recipe>(
      rc::gen::set(&Recipe::layers, rc::gen::mapcat(in_range(1, 11),
                                                    [layer](int count) {
                                                      return rc::gen::container<std::vector<Layer>>(
                                                          static_cast<std::size_t>(count), layer);
                                                    })),
      rc::gen::set(&Recipe::microbatches, in_range(1, 4)),
      rc::gen::set(&Recipe::order, in_range(0, 3)), rc::gen::set(&Recipe::retain),
      // (Three in five: no more than gradients.)
      rc::gen::set(&Recipe::derivatives,
                   rc::gen::map(in_range(-1, 4), [](int drawn) { return std::max(drawn, 1); })),
      rc::gen::set(&Recipe::differentiated, in_range(0, 10)),
      rc::gen::set(&Recipe::failure,
                   rc::gen::map(in_range(0, 10), [](int n) { return n < 4 ? n : 0; })),
      rc::gen::set(&Recipe::failing_layer, in_range(0, 10)), rc::gen::set(&Recipe::move),
      rc::gen::set(&Recipe::segments,
                   rc::gen::map(in_range(0, 3), [](int drawn) { return drawn == 0; })),
      rc::gen::set(&Recipe::whole));
}

}  // namespace ferry::test
