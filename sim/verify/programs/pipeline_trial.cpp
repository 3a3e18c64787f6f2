#include "sim/verify/programs/pipeline_trial.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "sim/verify/programs/phrases.h"

namespace ferry::verify {

namespace {

std::string_view name(PipelineKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"GPipe with the caller's backward",
                                                             "GPipe", "1F1B", "interleaved 1F1B"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Layers count from 1 in a report's words, as a reader of the list does.
std::string text_of(const NetLayer& layer) {
  Phrases words;
  words.add(std::to_string(kNetSizes[static_cast<std::size_t>(layer.size)]) + " elements");
  if (layer.pops >= 0) {
    const std::string skip = "the skip tensor of layer " + std::to_string(layer.pops + 1);
    words.add((layer.uses ? "reads " : "drops ") + skip);
  }
  return words.text();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial) {
  out << counted(static_cast<std::int64_t>(trial.layers.size()), "layer") << " in "
      << counted(static_cast<std::int64_t>(trial.first_layers().size()), "stage");
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    out << (i == 0 ? ": " : trial.layers[i].begins ? " || " : " | ") << text_of(trial.layers[i]);
  }
  Phrases step;
  step.add(name(trial.kind));
  step.add_if(trial.stages_each() > 1,
              counted(static_cast<std::int64_t>(trial.stages_each()), "stage") + " on a device");
  step.add("checkpoint " + std::string(name(trial.mode)));
  step.add(trial.microbatches == 1 ? "1 micro-batch"
                                   : std::to_string(trial.microbatches) + " micro-batches");
  step.add_if(trial.backwards_order, "losses from the last micro-batch on");
  step.add_if(trial.backwards > 1, counted(trial.backwards, "backward") + " of one graph");
  step.add_if(trial.steps > 1, counted(trial.steps, "step"));
  step.add_if(trial.passenger, "a second value through every stage");
  step.add_if(!trial.grad, "no gradients");
  step.add_if(trial.nodes_before > 0,
              counted(trial.nodes_before, "earlier node") + " on each worker");
  out << "; " << step.text();
  if (trial.offload) out << "; " << text_of(*trial.offload);
  return out;
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
