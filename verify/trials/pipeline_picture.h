// Predicts what a pipeline does between its stages: the nodes that it adds to autograd's graph, and
// the transfers between devices. It works from the trial alone. try_pipeline.cpp compares it with a
// run. It does not model layers that stop gradients.
//
// If the caller starts backward (shared/pipeline/pipeline.h):
//
//     stage j ──▶ out ──▶ recompute ──▶ copy skips ──▶ copy ──▶ in ──▶ stage j + 1
//                    fork of micro-batch i - 1 ──▶ join ┘
//
// If a schedule runs backward (shared/pipeline/cut_stage.h), each stage but the last ends in one
// node, the cut.
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
  // `trial` and `graphs` must outlive this object.
  PipelinePicture(const PipelineTrial& trial, const NetGraphs& graphs);

  AskedNodeCounts nodes() const;
  CrossingCounts crossings() const;

 private:
  struct Route {
    std::size_t from = 0, to = 0;  // stages
    std::size_t layer = 0;         // the layer that stashes
    bool used = false;             // the layer that pops it reads it
  };
  using Index = std::size_t;

  bool scheduled() const { return trial_.kind != PipelineKind::kAutograd; }
  std::uint32_t device(Index stage) const {
    return static_cast<std::uint32_t>(stage % trial_.devices());
  }
  bool runs_again(Index stage, Index microbatch) const {
    return trial_.runs_again(first_[stage], microbatch);
  }
  // Count the skip tensors that a stage pops; those of them that return a gradient; and those that
  // it stashes with a graph.
  std::size_t pops(Index stage) const;
  std::size_t pops_with_graph(Index stage, Index microbatch) const;
  std::size_t stashes_with_graph(Index stage, Index microbatch) const;
  std::size_t values() const { return trial_.passenger ? 2 : 1; }

  // Returns true if a gradient of the second value comes back to the stage.
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
  std::vector<Route> routes_;  // skip tensors that cross stages
};

}  // namespace ferry::verify
