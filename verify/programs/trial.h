// A trial: what one run of the core is given. It is a random step, the offloader's options, and a
// plan of the step's segments. A drawn trial depends on a seed and its number alone.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

// A span of the forward's operators, as a plan has it: where it begins behind the one before, how
// many it has at most, which of them are kept, as bits, and those in it.
struct DrawnSpan {
  int skips = 0;
  int operators = 1;
  int kept = 0;
  std::vector<DrawnSpan> inner = {};
};
inline constexpr int kSpanLevels = 3;  // at most

// The ops of forward that selective checkpoints may keep. Others run again.
inline constexpr std::array<std::string_view, 12> kSelectiveOps = {
    "linear",  "mask", "escape", "large", "own",       "draw",
    "dropout", "side", "late",   "embed", "meanwhile", "loss"};
// By op: PyTorch's policies, by their numbers.
using OpChoices = std::array<int, kSelectiveOps.size()>;
inline constexpr int kOpChoices = 6;

struct Trial {
  Recipe recipe;
  CoreOptions options;
  std::shared_ptr<const SegmentPlan> plan;  // null: its segments are as the program says
  std::vector<DrawnSpan> spans = {};
  bool selective = false;  // its checkpoints keep the outputs of some ops
  OpChoices policies = {};
};

CoreOptions draw_options(Draws& draws);
// Drawn last, so that programs which were drawn before there was one are drawn again.
void draw_backward_window(Draws& draws, CoreOptions& options);
// The plan need not fit any program. Null: the segments are not planned.
std::shared_ptr<const SegmentPlan> draw_plan(Draws& draws);
Trial draw_trial(Draws& draws, Sizes sizes = Sizes::kMixed);
// Those of them that the program has room for.
std::vector<PlanSpan> spans_in(const Program& program, const std::vector<DrawnSpan>& drawn);

// In words, on one line: what differs from the plainest trial of its size. Of options, the streams
// and the window are always said.
std::ostream& operator<<(std::ostream& out, const Trial& trial);
std::string text_of(const CoreOptions& options);
std::string text_of(const Recipe& recipe);
// Whether its plan is in force.
inline bool has_plan(const Trial& trial) { return trial.plan && trial.recipe.segments; }
// Whether its planned spans are in force. (A plan that has spans recomputes no whole forward.)
inline bool has_spans(const Trial& trial) {
  return !trial.spans.empty() && !(trial.recipe.segments && trial.recipe.whole);
}
// Whether its checkpoints are selective. What is kept serves one backward, and no span.
bool is_selective(const Trial& trial);

}  // namespace ferry::verify
