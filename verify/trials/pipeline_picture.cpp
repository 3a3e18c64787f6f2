#include "verify/trials/pipeline_picture.h"

#include <algorithm>

#include "verify/programs/pipeline_net.h"

namespace ferry::verify {
namespace {

constexpr bool kComputes = true;  // on the compute stream
constexpr bool kArrives = false;  // on a stream of arrival

// The shapes of nodes, as in the drawings of the core's comments.
AskedNode fork(std::uint32_t device, bool computes) { return {device, computes, 1, 0, 1, 1}; }
AskedNode join(std::uint32_t device, bool computes) { return {device, computes, 1, 1, 1, 0}; }
AskedNode pass(std::uint32_t device, bool computes, std::size_t width) {
  return {device, computes, width, 0, width, 0};
}
// The end of a graph with gradients of its own: a stash, or a cut.
AskedNode end(std::uint32_t device, std::size_t tensors) {
  return {device, kComputes, tensors, 0, 0, 1};
}
AskedNode skip_copy(std::uint32_t device) { return {device, kArrives, 0, 1, 0, 1}; }
AskedNode pop(std::uint32_t device) { return {device, kComputes, 0, 1, 1, 0}; }

}  // namespace

PipelinePicture::PipelinePicture(const PipelineTrial& trial, const NetGraphs& graphs)
    : trial_(trial),
      first_(trial.first_layers()),
      microbatches_(static_cast<std::size_t>(trial.microbatches)),
      graphs_(graphs) {
  for (Index i = 0; i < trial.layers.size(); ++i) {
    if (trial.layers[i].pops < 0) continue;
    const auto stashes = static_cast<Index>(trial.layers[i].pops);
    const Index from = graphs_.stage_of(stashes), to = graphs_.stage_of(i);
    if (from == to) continue;
    routes_.push_back({from, to, stashes, trial.layers[i].uses});
  }
}

std::size_t PipelinePicture::pops(Index stage) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(routes_, [&](const Route& route) { return route.to == stage; }));
}
std::size_t PipelinePicture::pops_with_graph(Index stage, Index microbatch) const {
  if (!graphs_.passage(stage, microbatch).entering.x) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(routes_, [&](const Route& route) {
    return route.to == stage && graphs_.takes_back(route.layer, microbatch);
  }));
}
std::size_t PipelinePicture::stashes_with_graph(Index stage, Index microbatch) const {
  return static_cast<std::size_t>(std::ranges::count_if(routes_, [&](const Route& route) {
    return route.from == stage && graphs_.stashes(route.layer, microbatch);
  }));
}

bool PipelinePicture::gradient_returns(Index stage, Index microbatch) const {
  if (!graphs_.passage(stage, microbatch).leaving.second) return false;
  const Index next = stage + 1;
  if (next == first_.size()) return NetProgram::carries(trial_);
  const Index end = next + 1 < first_.size() ? first_[next + 1] : trial_.layers.size();
  for (Index layer = first_[next]; layer < end; ++layer) {
    if (NetProgram::reads_passenger(trial_, layer)) return true;
    if (trial_.carried == static_cast<int>(layer)) return false;
  }
  return gradient_returns(next, microbatch);
}

// Adds the nodes between the end of a stage and the start of the next one.
void PipelinePicture::add_between(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  const std::uint32_t from = device(stage), to = device(stage + 1);
  const NetGraphs::Passage& passage = graphs_.passage(stage + 1, microbatch);
  const std::size_t leave = graphs_.passage(stage, microbatch).leaving.count();
  const std::size_t enter = passage.entering.count();
  if (leave > 0) ++counts[pass(from, kArrives, leave)];
  if (enter > 0) ++counts[pass(to, kArrives, enter)];
  if (enter > 0) ++counts[pass(to, kComputes, enter)];
  const std::size_t skips = passage.entering.x ? pops(stage + 1) : 0;
  const std::int64_t orders = static_cast<std::int64_t>(skips) + (passage.orders ? 1 : 0);
  if (orders > 0) {
    counts[fork(to, kArrives)] += orders;
    counts[join(to, kArrives)] += orders;
  }
  if (skips > 0) counts[skip_copy(to)] += static_cast<std::int64_t>(skips);
}

// Adds the nodes of a stage. Its pops hang on a fork of its inputs. What it stashes is joined to
// its outputs, and so is a skip tensor that passes the stage.
void PipelinePicture::add_stage(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  const std::uint32_t here = device(stage);
  const bool again = runs_again(stage, microbatch);
  const std::int64_t times = again ? trial_.backwards : 1;
  const auto popped = static_cast<std::int64_t>(pops_with_graph(stage, microbatch)),
             stashes = static_cast<std::int64_t>(stashes_with_graph(stage, microbatch));
  const NetGraphs::Passage& passage = graphs_.passage(stage, microbatch);
  const bool passes = !again && graphs_.passes(stage);
  if (passage.entering.x && (passes || pops(stage) > 0)) counts[fork(here, kComputes)] += times;
  if (passage.entering.x && passes) ++counts[join(here, kComputes)];
  if (popped > 0) counts[pop(here)] += times * popped;
  if (stashes > 0) {
    counts[end(here, 1)] += times * stashes;
    counts[join(here, kComputes)] += times * stashes;
  }
  if (!again) return;
  // If the second value gets no gradient, backward continues from a fork without one.
  const bool without = passage.ends.second && !gradient_returns(stage, microbatch);
  if (without) counts[fork(here, kComputes)] += times;
  // The checkpoint saves its inputs and the tensors that it popped.
  const std::size_t inputs = values() + pops(stage);
  ++counts[{here, kComputes, inputs, 1, values(), 1}];  // the first half of the checkpoint
  ++counts[{here, kComputes, inputs, 1, 0, 1}];         // its recompute
  ++counts[join(here, kComputes)];
}

void PipelinePicture::add_cut(AskedNodeCounts& counts, Index stage, Index microbatch) const {
  if (stage + 1 == first_.size()) return;
  const std::size_t ends =
      graphs_.passage(stage, microbatch).ends.count() + stashes_with_graph(stage, microbatch);
  if (ends > 0) ++counts[end(device(stage), ends)];
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

// Gradients come back from the end of the stage, `backwards` times.
void PipelinePicture::add_gradients(CrossingCounts& counts, Index stage, Index microbatch,
                                    std::int64_t backwards) const {
  const std::uint32_t from = device(stage + 1), to = device(stage);
  const NetGraphs::Flow& leaving = graphs_.passage(stage, microbatch).leaving;
  const NetGraphs::Flow& entering = graphs_.passage(stage + 1, microbatch).entering;
  const std::int64_t second = trial_.grad && gradient_returns(stage, microbatch) ? 1 : 0;
  const std::int64_t taken = (trial_.grad && leaving.x ? 1 : 0) + second;
  if (scheduled()) return counts.move(from, to, backwards, backwards * taken);
  // The edges that order micro-batches go through the first value, and so does its gradient. If the
  // value has no other graph, nothing waits for that gradient.
  const std::int64_t arriving = (entering.x ? 1 : 0) + second;
  if (entering.count() > 0) counts.arrive(from, to, backwards, backwards * arriving);
  if (leaving.count() > 0) counts.take(from, to, backwards, backwards * taken);
}

CrossingCounts PipelinePicture::crossings() const {
  CrossingCounts counts(trial_.devices());
  // A schedule runs backward even if there are no gradients.
  const std::int64_t steps = trial_.steps;
  const std::int64_t backwards = scheduled()   ? steps
                                 : trial_.grad ? steps * trial_.backwards
                                               : std::int64_t{0};
  for (Index i = 0; i < microbatches_; ++i) {
    for (Index s = 0; s + 1 < first_.size(); ++s) {
      counts.move(device(s), device(s + 1), steps, steps * static_cast<std::int64_t>(values()));
      if (backwards > 0) add_gradients(counts, s, i, backwards);
    }
  }
  const std::int64_t forwards = steps * trial_.microbatches;
  for (const Route& route : routes_) {
    counts.move(device(route.from), device(route.to), forwards, forwards);
    for (Index i = 0; i < microbatches_; ++i) {
      const bool returns = trial_.grad && route.used && graphs_.takes_back(route.layer, i);
      // Autograd's portals move only gradients that exist.
      const std::int64_t times = scheduled() || returns ? backwards : 0;
      counts.move(device(route.to), device(route.from), times, returns ? times : 0);
    }
  }
  return counts;
}

}  // namespace ferry::verify
