#include "verify/trials/net_graphs.h"

#include <algorithm>

#include "verify/programs/pipeline_net.h"

namespace ferry::verify {

NetGraphs::NetGraphs(const PipelineTrial& trial) : trial_(trial), first_(trial.first_layers()) {
  const auto microbatches = static_cast<std::size_t>(trial.microbatches);
  passages_.resize(first_.size(), std::vector<Passage>(microbatches));
  nodes_.resize(trial.layers.size(), std::vector<bool>(microbatches));
  for (std::size_t i = 0; i < microbatches; ++i) {
    for (std::size_t s = 0; s < first_.size(); ++s) {
      passages_[s][i] = enter(s, i);
      walk(s, i, passages_[s][i]);
    }
  }
}

std::size_t NetGraphs::stage_of(std::size_t layer) const {
  return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), layer) -
                                  first_.begin()) -
         1;
}

// Returns true if another stage pops the layer's stash.
bool NetGraphs::crosses(std::size_t layer) const {
  for (std::size_t to = layer + 1; to < trial_.layers.size(); ++to) {
    if (trial_.layers[to].pops == static_cast<int>(layer)) return stage_of(to) != stage_of(layer);
  }
  return false;
}

bool NetGraphs::passes(std::size_t stage) const {
  for (std::size_t to = 0; to < trial_.layers.size(); ++to) {
    const int from = trial_.layers[to].pops;
    if (from < 0 || stage_of(static_cast<std::size_t>(from)) >= stage) continue;
    if (stage < stage_of(to)) return true;
  }
  return false;
}

NetGraphs::Passage NetGraphs::enter(std::size_t stage, std::size_t microbatch) const {
  Passage passage;
  if (stage == 0) return passage;
  passage.entering = passages_[stage - 1][microbatch].leaving;
  passage.orders = !scheduled() && microbatch > 0 && passages_[stage][microbatch - 1].leaving.x;
  passage.entering.x |= passage.orders;
  return passage;
}

void NetGraphs::walk(std::size_t stage, std::size_t microbatch, Passage& passage) {
  const std::size_t end = stage + 1 < first_.size() ? first_[stage + 1] : trial_.layers.size();
  Flow now = passage.entering;
  bool joins = false;
  for (std::size_t i = first_[stage]; i < end; ++i) {
    const NetLayer& layer = trial_.layers[i];
    bool leads = (now.x && !layer.stops) || !layer.frozen;
    if (layer.pops >= 0 && layer.uses) {
      const auto from = static_cast<std::size_t>(layer.pops);
      // Autograd's portals return a gradient through the micro-batch's first value.
      const bool back = scheduled() || passage.entering.x;
      leads |= stage_of(from) == stage ? stashes(from, microbatch)
                                       : takes_back(from, microbatch) && back;
    }
    if (NetProgram::reads_passenger(trial_, i)) leads |= now.second;
    nodes_[i][microbatch] = now.x = leads;
    if (NetProgram::carries(trial_) && trial_.carried == static_cast<int>(i)) now.second = now.x;
    joins |= crosses(i) && stashes(i, microbatch);
  }
  passage.ends = now;
  if ((joins || (passes(stage) && passage.entering.x)) && !scheduled()) now.x = true;
  if (trial_.runs_again(first_[stage], microbatch)) now = {true, trial_.passenger && !trial_.ids};
  passage.leaving = now;
}

}  // namespace ferry::verify
