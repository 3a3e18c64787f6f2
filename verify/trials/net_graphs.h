// Where the values of a pipeline's trial have a graph, told from the trial alone: with frozen
// layers not everything has one.
//
// A layer whose weight has no gradient makes a node only if something that it reads has a graph.
// What adds one beyond that: a checkpoint's first run, whose outputs have one in any case; where
// the caller's autograd goes backward, the edges that order it (shared/pipeline/pipeline.h).
#pragma once

#include <cstddef>
#include <vector>

#include "verify/programs/pipeline_trial.h"

namespace ferry::verify {

class NetGraphs {
 public:
  // Of a micro-batch's values.
  struct Flow {
    bool x = false;
    bool second = false;
    std::size_t count() const { return (x ? 1U : 0U) + (second ? 1U : 0U); }
  };
  // Of one micro-batch at one stage.
  struct Passage {
    Flow entering;        // what the stage is given
    Flow ends;            // what its layers make of that, when they make a graph
    Flow leaving;         // what goes on to the next stage
    bool orders = false;  // an edge from the micro-batch before was joined before it entered
  };

  // The trial outlives it.
  explicit NetGraphs(const PipelineTrial& trial);

  const Passage& passage(std::size_t stage, std::size_t microbatch) const {
    return passages_[stage][microbatch];
  }
  // Whether the layer's node is made for the micro-batch, by the run that makes a graph.
  bool makes_node(std::size_t layer, std::size_t microbatch) const {
    return nodes_[layer][microbatch];
  }
  // Whether the layer's output, as it is stashed, has a graph there.
  bool stashes(std::size_t layer, std::size_t microbatch) const {
    return makes_node(layer, microbatch) && !trial_.layers[layer].detached;
  }
  // Whether whoever pops it from another stage may get a gradient to give back: what a first run
  // stashes may have a graph, for all that is known then.
  bool takes_back(std::size_t layer, std::size_t microbatch) const {
    return stashes(layer, microbatch) || trial_.runs_again(first_[stage_of(layer)], microbatch);
  }
  std::size_t stage_of(std::size_t layer) const;
  // Whether a skip tensor goes past the stage, from one before it to one after it.
  bool passes(std::size_t stage) const;

 private:
  bool scheduled() const { return trial_.kind != PipelineKind::kAutograd; }
  bool crosses(std::size_t layer) const;
  Passage enter(std::size_t stage, std::size_t microbatch) const;
  void walk(std::size_t stage, std::size_t microbatch, Passage& passage);

  const PipelineTrial& trial_;
  const std::vector<std::size_t> first_;
  std::vector<std::vector<Passage>> passages_;  // by stage and micro-batch
  std::vector<std::vector<bool>> nodes_;        // by layer and micro-batch
};

}  // namespace ferry::verify
