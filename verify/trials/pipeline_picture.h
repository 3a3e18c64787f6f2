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

#include "verify/oracles/asked_nodes.h"
#include "verify/oracles/crossings.h"
#include "verify/programs/pipeline_trial.h"
#include "verify/trials/net_graphs.h"

namespace ferry::verify {

class PipelinePicture {
 public:
  // Both outlive it.
  PipelinePicture(const PipelineTrial& trial, const NetGraphs& graphs);

  AskedNodeCounts nodes() const;
  CrossingCounts crossings() const;

 private:
  struct Route {
    std::size_t from = 0, to = 0;  // stages
    std::size_t layer = 0;         // which stashes
    bool used = false;             // whoever pops it reads it
  };
  using Index = std::size_t;

  bool scheduled() const { return trial_.kind != PipelineKind::kAutograd; }
  std::uint32_t device(Index stage) const {
    return static_cast<std::uint32_t>(stage % trial_.devices());
  }
  bool runs_again(Index stage, Index microbatch) const {
    return trial_.runs_again(first_[stage], microbatch);
  }
  // Skip tensors that come to a stage; of these, those that take a gradient back; and those with a
  // graph that leave it.
  std::size_t pops(Index stage) const;
  std::size_t pops_with_graph(Index stage, Index microbatch) const;
  std::size_t stashes_with_graph(Index stage, Index microbatch) const;
  std::size_t values() const { return trial_.passenger ? 2 : 1; }

  // Whether a gradient of the second value comes back to a stage that it leaves.
  bool gradient_returns(Index stage, Index microbatch) const;

  void add_between(AskedNodeCounts& counts, Index stage, Index microbatch) const;
  void add_stage(AskedNodeCounts& counts, Index stage, Index microbatch) const;
  void add_cut(AskedNodeCounts& counts, Index stage, Index microbatch) const;
  void add_gradients(CrossingCounts& counts, Index stage, Index microbatch,
                     std::int64_t backwards) const;

  const PipelineTrial& trial_;
  const std::vector<std::size_t> first_;
  const std::size_t microbatches_;
  const NetGraphs& graphs_;
  std::vector<Route> routes_;  // that cross
};

}  // namespace ferry::verify
