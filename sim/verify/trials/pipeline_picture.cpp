#include "sim/verify/trials/pipeline_picture.h"

#include <algorithm>

#include "sim/verify/programs/pipeline_net.h"

namespace ferry::verify {
namespace {

constexpr bool kComputes = true;  // on the stream that computes
constexpr bool kArrives = false;  // on a stream of arrival

// The shapes, on a device; as the core's comments draw them.
AskedNode fork(std::uint32_t device, bool computes) { return {device, computes, 1, 0, 1, 1}; }
AskedNode join(std::uint32_t device, bool computes) { return {device, computes, 1, 1, 1, 0}; }
AskedNode pass(std::uint32_t device, bool computes, std::size_t width) {
  return {device, computes, width, 0, width, 0};
}
// The end of what has gradients of its own: a stash, or a cut.
AskedNode end(std::uint32_t device, std::size_t tensors) {
  return {device, kComputes, tensors, 0, 0, 1};
}
AskedNode skip_copy(std::uint32_t device) { return {device, kArrives, 0, 1, 0, 1}; }
AskedNode pop(std::uint32_t device) { return {device, kComputes, 0, 1, 1, 0}; }

}  // namespace

PipelinePicture::PipelinePicture(const PipelineTrial& trial)
    : trial_(trial),
      first_(trial.first_layers()),
      microbatches_(static_cast<std::size_t>(trial.microbatches)) {
  for (Index i = 0; i < trial.layers.size(); ++i) {
    if (trial.layers[i].pops < 0) continue;
    const auto stashes = static_cast<Index>(trial.layers[i].pops);
    const Index from = stage_of(stashes), to = stage_of(i);
    if (from == to) continue;
    routes_.push_back({from, to, trial.layers[i].uses, trial.layers[stashes].detached});
  }
}

PipelinePicture::Index PipelinePicture::stage_of(Index layer) const {
  return static_cast<Index>(std::upper_bound(first_.begin(), first_.end(), layer) -
                            first_.begin()) -
         1;
}

std::size_t PipelinePicture::pops(Index stage) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(routes_, [&](const Route& route) { return route.to == stage; }));
}
std::size_t PipelinePicture::pops_with_graph(Index stage, Index microbatch) const {
  return static_cast<std::size_t>(std::ranges::count_if(routes_, [&](const Route& route) {
    return route.to == stage && takes_back(route, microbatch);
  }));
}
std::size_t PipelinePicture::stashes_with_graph(Index stage) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      routes_, [&](const Route& route) { return route.from == stage && !route.detached; }));
}

// It begins as an input without one. What a checkpoint gives has one in any case, but for a
// schedule, which knows that integers have none.
bool PipelinePicture::has_graph(Index stage, Index microbatch) const {
  if (trial_.ids && scheduled()) return false;
  if (NetProgram::carries(trial_) && stage_of(static_cast<Index>(trial_.carried)) <= stage)
    return true;
  for (Index before = 0; before <= stage; ++before) {
    if (runs_again(before, microbatch)) return true;
  }
  return false;
}

bool PipelinePicture::gradient_returns(Index stage, Index microbatch) const {
  if (!has_graph(stage, microbatch)) return false;
  const Index next = stage + 1;
  if (next == first_.size()) return NetProgram::carries(trial_);
  const Index end = next + 1 < first_.size() ? first_[next + 1] : trial_.layers.size();
  for (Index layer = first_[next]; layer < end; ++layer) {
    if (NetProgram::reads_passenger(trial_, layer)) return true;
    if (trial_.carried == static_cast<int>(layer)) return false;
  }
  // The caller's autograd gives a checkpoint zeros where no gradient comes.
  if (!scheduled() && runs_again(next, microbatch)) return true;
  return gradient_returns(next, microbatch);
}

// From the end of a stage to the beginning of the next one.
void PipelinePicture::add_between(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  const std::uint32_t from = device(stage), to = device(stage + 1);
  const std::size_t width = trial_.passenger && has_graph(stage, microbatch) ? 2 : 1;
  ++counts[pass(from, kArrives, width)];
  ++counts[pass(to, kArrives, width)];
  ++counts[pass(to, kComputes, width)];
  const std::size_t skips = pops(stage + 1);
  const std::int64_t orders = static_cast<std::int64_t>(skips) + (microbatch > 0 ? 1 : 0);
  if (orders > 0) {
    counts[fork(to, kArrives)] += orders;
    counts[join(to, kArrives)] += orders;
  }
  if (skips > 0) counts[skip_copy(to)] += static_cast<std::int64_t>(skips);
}

// What pops ends before the stage's inputs do; what is stashed joins its outputs.
void PipelinePicture::add_stage(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  const std::uint32_t here = device(stage);
  const bool again = runs_again(stage, microbatch);
  const std::int64_t times = again ? trial_.backwards : 1;
  const auto popped = static_cast<std::int64_t>(pops_with_graph(stage, microbatch)),
             stashes = static_cast<std::int64_t>(stashes_with_graph(stage));
  if (pops(stage) > 0) counts[fork(here, kComputes)] += times;
  if (popped > 0) counts[pop(here)] += times * popped;
  if (stashes > 0) {
    counts[end(here, 1)] += times * stashes;
    counts[join(here, kComputes)] += times * stashes;
  }
  if (!again) return;
  // It saves its inputs, and what it popped.
  const std::size_t inputs = values() + pops(stage);
  ++counts[{here, kComputes, inputs, 1, values(), 1}];  // the checkpoint
  ++counts[{here, kComputes, inputs, 1, 0, 1}];         // and its recompute
  ++counts[join(here, kComputes)];
}

void PipelinePicture::add_cut(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  if (stage + 1 == first_.size()) return;
  // What a first run gives has a graph in any case; the second run knows.
  bool second = trial_.passenger && stage > 0 && has_graph(stage - 1, microbatch);
  second |= NetProgram::carries(trial_) && stage_of(static_cast<Index>(trial_.carried)) <= stage;
  ++counts[end(device(stage), 1 + (second ? 1 : 0) + stashes_with_graph(stage))];
}

AskedNodeCounts PipelinePicture::nodes() const {
  AskedNodeCounts counts;
  if (!trial_.grad) return counts;
  for (Index i = 0; i < microbatches_; ++i) {
    for (Index s = 0; s < first_.size(); ++s) {
      if (scheduled()) {
        add_cut(counts, s, i);
        continue;
      }
      add_stage(counts, s, i);
      if (s + 1 < first_.size()) add_between(counts, s, i);
    }
  }
  for (auto& [node, count] : counts) count *= trial_.steps;
  return counts;
}

CrossingCounts PipelinePicture::crossings() const {
  CrossingCounts counts(trial_.devices());
  // A schedule goes backward in any case, with or without gradients.
  const std::int64_t steps = trial_.steps;
  const std::int64_t backwards = scheduled()   ? steps
                                 : trial_.grad ? steps * trial_.backwards
                                               : std::int64_t{0};
  for (Index i = 0; i < microbatches_; ++i) {
    for (Index s = 0; s + 1 < first_.size(); ++s) {
      const std::int64_t returning = trial_.grad ? gradients(s, i) : 0;
      counts.move(device(s), device(s + 1), steps, steps * static_cast<std::int64_t>(values()));
      counts.move(device(s + 1), device(s), backwards, backwards * returning);
    }
  }
  const std::int64_t forwards = steps * trial_.microbatches;
  for (const Route& route : routes_) {
    counts.move(device(route.from), device(route.to), forwards, forwards);
    for (Index i = 0; i < microbatches_; ++i) {
      const bool returns = trial_.grad && route.used && takes_back(route, i);
      // Autograd's portals move only the gradients that there are.
      const std::int64_t times = scheduled() || returns ? backwards : 0;
      counts.move(device(route.to), device(route.from), times, returns ? times : 0);
    }
  }
  return counts;
}

}  // namespace ferry::verify
