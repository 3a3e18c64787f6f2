#include "verify/programs/trial.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "formats/spans.h"

namespace ferry::verify {
namespace {

SegmentPlan draw_segment(Draws& draws, int depth) {
  SegmentPlan plan;
  plan.checkpoint = !draws.one_in(6);
  plan.unlisted = !draws.one_in(4);
  for (int packs = draws.in(0, 12); packs > 0; --packs) {
    plan.choices.push_back(static_cast<SavedChoice>(draws.in(0, 3)));
  }
  for (int segments = depth == 0 ? 0 : draws.in(0, 4); segments > 0; --segments) {
    plan.segments.push_back(draw_segment(draws, depth - 1));
  }
  return plan;
}

// Places the random spans in the operators [begin, end), as spans_in does.
std::vector<PlanSpan> spans_within(const std::vector<OperatorRange>& operators, std::size_t begin,
                                   std::size_t end, const std::vector<DrawnSpan>& drawn) {
  std::vector<PlanSpan> spans;
  std::size_t at = begin;
  for (const DrawnSpan& each : drawn) {
    at += static_cast<std::size_t>(each.skips);
    if (at >= end) break;
    PlanSpan span{.first = at, .last = at};
    const auto most = static_cast<std::uint64_t>(each.operators);
    while (span.last + 1 < end && span.last + 1 - span.first < most &&
           operators[span.last].joins_next) {
      ++span.last;
    }
    for (std::uint64_t op = span.first; op <= span.last; ++op) {
      if ((each.kept >> (op - span.first) & 1) != 0) span.keep.push_back(op);
    }
    at = span.last + 1;
    span.inner = spans_within(operators, span.first, at, each.inner);
    spans.push_back(std::move(span));
  }
  return spans;
}

// Adds random inner spans, at most `levels` levels deep.
void draw_inner(Draws& draws, std::vector<DrawnSpan>& spans, int levels) {
  if (levels == 0) return;
  for (DrawnSpan& span : spans) {
    for (int inner = draws.one_in(2) ? draws.in(1, 4) : 0; inner > 0; --inner) {
      span.inner.push_back({.skips = draws.in(0, 2), .operators = draws.in(1, 5)});
      span.inner.back().kept = draws.one_in(2) ? draws.in(0, 64) : 0;
    }
    draw_inner(draws, span.inner, levels - 1);
  }
}

// Makes the trial's checkpoints selective, and removes what does not work with them.
void make_selective(Draws& draws, Trial& trial) {
  trial.selective = true;
  for (int& policy : trial.policies) policy = draws.in(0, kOpChoices);
  trial.spans.clear();
  Recipe& recipe = trial.recipe;
  recipe.segments = true;
  recipe.retain = false;
  recipe.derivatives = 1;
  recipe.failure = StepFailure::kNone;
  for (Layer& layer : recipe.layers) {
    layer.segment &= ~kSpanBit;
    if (layer.extra >= Extra::kInnerBackward) layer.extra = Extra::kDropout;
  }
}

}  // namespace

CoreOptions draw_options(Draws& draws) {
  const auto pick = [&draws](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + draws.in(0, static_cast<int>(values.size())));
  };
  CoreOptions options;
  options.host_memory = draws.one_in(8) ? HostMemory::kPageable : HostMemory::kPinned;
  const int streams = draws.in(0, 8);
  options.copy_streams = streams == 0   ? CopyStreams::kNone
                         : streams <= 2 ? CopyStreams::kOne
                                        : CopyStreams::kTwo;
  options.reload_pool = draws.one_in(2) ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
  options.min_bytes = pick({0, 1024, 4096});
  options.window_tensors = pick({1, 2, 5, kUnlimited});
  options.window_bytes = pick({0, 64 << 10, 4 << 20, kUnlimited});
  options.prefetch_bytes = pick({0, 64 << 10, 8 << 20});
  options.hold_bytes = pick({0, 64 << 10, 8 << 20, kUnlimited});
  if (draws.one_in(4)) {
    for (int i = 0; i < 60; ++i) options.offload.push_back(!draws.one_in(3));
  }
  return options;
}

void draw_backward_window(Draws& draws, CoreOptions& options) {
  constexpr std::array<std::int64_t, 3> kPacks = {0, 2, 6};
  if (draws.one_in(2)) options.prefetch_tensors = kPacks[static_cast<std::size_t>(draws.in(0, 3))];
}

std::shared_ptr<const SegmentPlan> draw_plan(Draws& draws) {
  if (draws.one_in(2)) return nullptr;
  return std::make_shared<const SegmentPlan>(draw_segment(draws, 3));
}

std::vector<PlanSpan> spans_in(const Program& program, const std::vector<DrawnSpan>& drawn) {
  const std::vector<OperatorRange> operators = operator_ranges(program);
  return spans_within(operators, 0, operators.size(), drawn);
}

Trial draw_trial(Draws& draws, Sizes sizes) {
  Trial trial;
  trial.recipe = draw_recipe(draws, sizes);
  trial.options = draw_options(draws);
  trial.plan = draw_plan(draws);
  draw_repeats(draws, trial.recipe);
  if (draws.one_in(8)) trial.options.window_bytes = kAutomatic;
  if (draws.one_in(8)) trial.options.prefetch_bytes = trial.options.hold_bytes = kAutomatic;
  for (int spans = draws.few(12, 4); spans > 0; --spans) {
    trial.spans.push_back({.skips = draws.in(0, 3), .operators = draws.in(1, 7)});
    trial.spans.back().kept = draws.one_in(2) ? draws.in(0, 64) : 0;
  }
  draw_inner(draws, trial.spans, kSpanLevels - 1);
  draw_sequence(draws, trial.recipe);
  if (draws.one_in(8)) make_selective(draws, trial);
  draw_backward_window(draws, trial.options);
  draw_frozen(draws, trial.recipe);
  return trial;
}

bool is_selective(const Trial& trial) {
  const Recipe& recipe = trial.recipe;
  const auto strange = [](const Layer& layer) {
    return layer.extra >= Extra::kInnerBackward ||
           (layer.opens > 0 && (layer.segment & kSpanBit) != 0);
  };
  return trial.selective && recipe.segments && !recipe.retain && recipe.derivatives == 1 &&
         recipe.failure == StepFailure::kNone && trial.spans.empty() &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

}  // namespace ferry::verify
