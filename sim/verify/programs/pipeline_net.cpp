#include "sim/verify/programs/pipeline_net.h"

#include <ostream>

namespace ferry::verify {

std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial) {
  out << "layers";
  for (const NetLayer& layer : trial.layers) {
    out << (layer.begins ? " | " : " ") << layer.size;
    if (layer.pops >= 0) out << "+" << layer.pops << (layer.uses ? "" : "unused");
  }
  return out << "; kind " << static_cast<int>(trial.kind) << " mode " << name(trial.mode)
             << " microbatches " << trial.microbatches << " each " << trial.each
             << (trial.backwards_order ? " reversed" : "") << " backwards " << trial.backwards
             << " steps " << trial.steps << (trial.offload ? " offloads" : "")
             << (trial.passenger ? " passenger" : "") << (trial.grad ? "" : " no grad")
             << " nodes before " << trial.nodes_before;
}

PipelineTrial draw_pipeline_trial(Draws& draws) {
  PipelineTrial trial;
  trial.kind = static_cast<PipelineKind>(draws.in(0, 4));
  trial.mode = static_cast<CheckpointMode>(draws.in(0, 3));
  trial.each = draws.in(1, 4);
  trial.backwards_order = draws.one_in(2);
  const int count = draws.in(2, 10);
  for (int i = 0; i < count; ++i) {
    NetLayer layer{draws.in(0, 3), -1, draws.one_in(2), !draws.one_in(5)};
    // Each layer's output is read a second time at most once.
    if (i > 1 && !draws.one_in(3)) {
      const int from = draws.in(0, i - 1);
      const bool taken = std::any_of(trial.layers.begin(), trial.layers.end(),
                                     [from](const NetLayer& each) { return each.pops == from; });
      if (!taken) layer.pops = from;
    }
    trial.layers.push_back(layer);
  }
  trial.microbatches = draws.in(1, 5);
  if (trial.kind == PipelineKind::kInterleaved) {
    trial.microbatches = static_cast<int>(trial.devices()) * draws.in(1, 3);
  }
  if (trial.kind == PipelineKind::kAutograd) trial.backwards = draws.in(1, 3);
  trial.steps = draws.in(1, 3);
  if (draws.one_in(3)) trial.offload = draw_options(draws);
  trial.passenger = draws.one_in(3);
  trial.grad = !draws.one_in(8);
  trial.nodes_before = draws.one_in(2) ? draws.in(1, 1000) : 0;
  return trial;
}

}  // namespace ferry::verify
