// What a pipeline does between its stages, told from the trial alone: the nodes that it asks
// autograd for, and the transfers from device to device.
//
// The caller's autograd goes backward (shared/pipeline/pipeline.h):
//
//     stage j ──▶ out ──▶ recompute ──▶ copy skips ──▶ copy ──▶ in ──▶ stage j + 1
//                    fork of micro-batch i - 1 ──▶ join ┘
//
// A schedule goes backward (shared/pipeline/cut_stage.h): each stage but the last ends in one node,
// the cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/verify/oracles/asked_nodes.h"
#include "sim/verify/oracles/crossings.h"
#include "sim/verify/programs/pipeline_trial.h"

namespace ferry::verify {

class PipelinePicture {
 public:
  explicit PipelinePicture(const PipelineTrial& trial);

  AskedNodeCounts nodes() const;
  CrossingCounts crossings() const;

 private:
  struct Route {
    std::size_t from = 0, to = 0;  // stages
    bool used = false;             // whoever pops it reads it
    bool detached = false;         // it has no graph
  };
  using Index = std::size_t;

  bool scheduled() const { return trial_.kind != PipelineKind::kAutograd; }
  std::uint32_t device(Index stage) const {
    return static_cast<std::uint32_t>(stage % trial_.devices());
  }
  Index stage_of(Index layer) const;
  bool runs_again(Index stage, Index microbatch) const {
    return trial_.runs_again(first_[stage], microbatch);
  }
  // Skip tensors that come to a stage; of these, those that take a gradient back; and those with a
  // graph that leave it.
  std::size_t pops(Index stage) const;
  std::size_t pops_with_graph(Index stage, Index microbatch) const;
  std::size_t stashes_with_graph(Index stage) const;
  // What a first run stashes may have a graph, for all that is known then.
  bool takes_back(const Route& route, Index microbatch) const {
    return !route.detached || runs_again(route.from, microbatch);
  }
  std::size_t values() const { return trial_.passenger ? 2 : 1; }

  // Whether the second value has a graph when it leaves a stage, and whether a gradient of it comes
  // back there.
  bool has_graph(Index stage, Index microbatch) const;
  bool gradient_returns(Index stage, Index microbatch) const;
  std::int64_t gradients(Index stage, Index microbatch) const {
    return 1 + (trial_.passenger && gradient_returns(stage, microbatch) ? 1 : 0);
  }

  void add_between(AskedNodeCounts& counts, Index stage, Index microbatch) const;
  void add_stage(AskedNodeCounts& counts, Index stage, Index microbatch) const;
  void add_cut(AskedNodeCounts& counts, Index stage, Index microbatch) const;

  const PipelineTrial& trial_;
  const std::vector<std::size_t> first_;
  const std::size_t microbatches_;
  std::vector<Route> routes_;  // that cross
};

}  // namespace ferry::verify
