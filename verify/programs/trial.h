// A trial is the input of one run of the core: a random step, the options of the offloader, and a
// plan of the step's segments. A random trial depends only on a seed and its number.
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

// A random span of operators of the forward. It begins `skips` operators after the end of the
// previous span and has at most `operators` operators. The bits of `kept` say which of them are
// kept. `inner` has the spans inside it.
struct DrawnSpan {
  int skips = 0;
  int operators = 1;
  int kept = 0;
  std::vector<DrawnSpan> inner = {};
};
inline constexpr int kSpanLevels = 3;  // levels of nested spans, at most

// The operators of forward that a selective checkpoint may keep. It recomputes all others.
inline constexpr std::array<std::string_view, 12> kSelectiveOps = {
    "linear",  "mask", "escape", "large", "own",       "draw",
    "dropout", "side", "late",   "embed", "meanwhile", "loss"};
// For each of these operators, the number of a policy of PyTorch (CheckpointPolicy).
using OpChoices = std::array<int, kSelectiveOps.size()>;
inline constexpr int kOpChoices = 6;

struct Trial {
  Recipe recipe;
  CoreOptions options;
  std::shared_ptr<const SegmentPlan> plan;  // null: the program says which segments are checkpoints
  std::vector<DrawnSpan> spans = {};
  bool selective = false;  // its checkpoints keep the results of some operators
  OpChoices policies = {};
};

CoreOptions draw_options(Draws& draws);
// Called last, so that numbers that were drawn before this option existed still give the same
// trials.
void draw_backward_window(Draws& draws, CoreOptions& options);
// The plan may not fit the program. Null: the segments have no plan.
std::shared_ptr<const SegmentPlan> draw_plan(Draws& draws);
Trial draw_trial(Draws& draws, Sizes sizes = Sizes::kMixed);
// Places the random spans in the program, one after the other. A span that is too long is
// shortened; spans that would begin past the last operator are left out.
std::vector<PlanSpan> spans_in(const Program& program, const std::vector<DrawnSpan>& drawn);

// Describe a trial in words, on one line: everything that differs from the simplest trial of its
// size. For options, the copy streams and the window are always included.
std::ostream& operator<<(std::ostream& out, const Trial& trial);
std::string text_of(const CoreOptions& options);
std::string text_of(const Recipe& recipe);
// Returns true if the trial's plan has an effect.
inline bool has_plan(const Trial& trial) { return trial.plan && trial.recipe.segments; }
// Returns true if its spans have an effect. They have none if the whole forward is one segment.
inline bool has_spans(const Trial& trial) {
  return !trial.spans.empty() && !(trial.recipe.segments && trial.recipe.whole);
}
// Returns true if its checkpoints are selective: each keeps some results and recomputes the others.
// Kept results can be used in one backward only, and not in spans. So a trial with a retained
// graph, higher derivatives, an inner backward, a failing step or spans is not selective.
bool is_selective(const Trial& trial);

}  // namespace ferry::verify
