// Says which values of a pipeline have a graph of autograd. It works from the trial alone; with
// frozen layers, not every value has one. try_pipeline.cpp and pipeline_picture.h use it to predict
// what autograd saves and which nodes there are.
//
// A layer whose weight has no gradient makes a node only if it reads something that has a graph.
// Two things add a graph: the first run of a checkpoint, whose outputs always have one, and, if the
// caller starts backward, the edges that put micro-batches in order (shared/pipeline/pipeline.h).
#pragma once

#include <cstddef>
#include <vector>

#include "verify/programs/pipeline_trial.h"

namespace ferry::verify {

class NetGraphs {
 public:
  // Which values of a micro-batch have a graph.
  struct Flow {
    bool x = false;
    bool second = false;
    std::size_t count() const { return (x ? 1U : 0U) + (second ? 1U : 0U); }
  };
  // The graphs of one micro-batch at one stage.
  struct Passage {
    Flow entering;        // the inputs of the stage
    Flow ends;            // the outputs of its layers, when they make a graph
    Flow leaving;         // what goes on to the next stage
    bool orders = false;  // an edge from the previous micro-batch was joined before it entered
  };

  // The trial must outlive it.
  explicit NetGraphs(const PipelineTrial& trial);

  const Passage& passage(std::size_t stage, std::size_t microbatch) const {
    return passages_[stage][microbatch];
  }
  // Returns true if the run that makes a graph makes the layer's node for the micro-batch.
  bool makes_node(std::size_t layer, std::size_t microbatch) const {
    return nodes_[layer][microbatch];
  }
  // Returns true if the stashed output of the layer has a graph.
  bool stashes(std::size_t layer, std::size_t microbatch) const {
    return makes_node(layer, microbatch) && !trial_.layers[layer].detached;
  }
  // Returns true if a stage that pops the layer's stash may have to return a gradient. For a stash
  // of a first run, this is not known yet, so it may.
  bool takes_back(std::size_t layer, std::size_t microbatch) const {
    return stashes(layer, microbatch) || trial_.runs_again(first_[stage_of(layer)], microbatch);
  }
  std::size_t stage_of(std::size_t layer) const;
  // Returns true if a skip tensor passes the stage on its way from an earlier to a later stage.
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
