#include "verify/programs/pipeline_trial.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "shared/pipeline/balance.h"
#include "verify/programs/phrases.h"

namespace ferry::verify {

namespace {

std::string_view name(PipelineKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"GPipe with the caller's backward",
                                                             "GPipe", "1F1B", "interleaved 1F1B"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Counts layers from 1, as a reader does.
std::string text_of(const NetLayer& layer, const PipelineTrial& trial) {
  Phrases words;
  words.add(std::to_string(kNetSizes[static_cast<std::size_t>(layer.size)]) + " elements");
  if (layer.pops >= 0) {
    const std::string skip = "the skip tensor of layer " + std::to_string(layer.pops + 1);
    words.add((layer.uses ? "reads " : "drops ") + skip);
  }
  words.add_if(layer.detached, "stashes without a graph");
  words.add_if(layer.frozen, "frozen");
  words.add_if(layer.stops, "stops gradients");
  words.add_if(&layer != &trial.layers.front() && layer.writes, "writes its input in place");
  words.add_if(trial.balanced > 0, "cost " + std::to_string(layer.cost));
  return words.text();
}

std::string stray_of(const PipelineTrial& trial) {
  if (trial.stray == Stray::kNothing) return "";
  const auto number = [&trial](int layer) {
    return std::to_string(layer % static_cast<int>(trial.layers.size()) + 1);
  };
  const std::string what = trial.stray == Stray::kStash ? " declares a stash" : " declares a pop";
  return "layer " + number(trial.stray_layer) + what + " of layer " + number(trial.stray_of) +
         "'s skip tensor";
}

// Lists the policies of the stages.
std::string policies_of(const PipelineTrial& trial) {
  std::string text = "stages that";
  const char* before = " ";
  for (const std::size_t first : trial.first_layers()) {
    text.append(before).append(name(trial.policy(first)));
    before = ", ";
  }
  return text;
}

}  // namespace

std::size_t PipelineTrial::cuts() const {
  if (balanced > 0 && !layers.empty()) {
    return std::min(layers.size(), static_cast<std::size_t>(balanced));
  }
  std::size_t count = 1;
  for (std::size_t i = 1; i < layers.size(); ++i) count += layers[i].begins ? 1 : 0;
  return count;
}

std::vector<std::int64_t> PipelineTrial::costs() const {
  std::vector<std::int64_t> costs;
  for (const NetLayer& layer : layers) costs.push_back(layer.cost);
  return costs;
}

std::vector<std::size_t> PipelineTrial::first_layers(const PipelineRules& rules) const {
  std::vector<std::size_t> first = {0};
  if (balanced > 0) {
    for (const std::size_t size : balance(costs(), stages(), rules)) {
      first.push_back(first.back() + size);
    }
    first.pop_back();
    return first;
  }
  for (std::size_t i = 1; i < layers.size(); ++i) {
    if (layers[i].begins) first.push_back(i);
  }
  first.resize(stages());
  return first;
}

// A stage may write its input only if nothing else uses it and the stage is not recomputed.
std::optional<std::size_t> PipelineTrial::refused_stage() const {
  const std::vector<std::size_t> first = first_layers();
  for (std::size_t stage = 1; stage < first.size(); ++stage) {
    if (!writes(first[stage])) continue;
    const int given = static_cast<int>(first[stage]) - 1;
    const bool stashed = std::any_of(layers.begin(), layers.end(), [given](const NetLayer& layer) {
      return layer.pops == given;
    });
    const bool second = passenger && carried == given;
    if (stashed || second || runs_again(first[stage], 0)) return stage;
  }
  return std::nullopt;
}

// If autograd runs backward, the inputs of a recomputed stage are not offloaded.
StagePolicy PipelineTrial::policy(std::size_t first) const {
  const StagePolicy policy = layers[first].policy;
  if (policy == StagePolicy::kOffload && !offload) return StagePolicy::kKeep;
  if (policy != StagePolicy::kCheckpointOffload) return policy;
  return offload && kind != PipelineKind::kAutograd ? policy : StagePolicy::kCheckpoint;
}

std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial) {
  const std::vector<std::size_t> first = trial.first_layers();
  out << counted(static_cast<std::int64_t>(trial.layers.size()), "layer") << " in "
      << counted(static_cast<std::int64_t>(first.size()), "stage");
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    const bool begins = std::find(first.begin(), first.end(), i) != first.end();
    out << (i == 0 ? ": " : begins ? " || " : " | ") << text_of(trial.layers[i], trial);
  }
  Phrases step;
  step.add_if(trial.policies, policies_of(trial));
  step.add(stray_of(trial));
  step.add_if(trial.isolated, "skip tensors in namespaces");
  step.add(name(trial.kind));
  step.add_if(trial.stages_each() > 1,
              counted(static_cast<std::int64_t>(trial.stages_each()), "stage") + " on a device");
  step.add("checkpoint " + std::string(name(trial.mode)));
  step.add(trial.microbatches == 1 ? "1 micro-batch"
                                   : std::to_string(trial.microbatches) + " micro-batches");
  step.add_if(trial.backwards_order, "losses from the last micro-batch to the first");
  step.add_if(trial.backwards > 1, counted(trial.backwards, "backward") + " of one graph");
  step.add_if(trial.steps > 1, counted(trial.steps, "step"));
  step.add_if(trial.goes_ahead(), "all forwards before the first backward");
  step.add_if(trial.passenger, "a second value through every stage");
  step.add_if(trial.passenger && trial.carried >= 0,
              "replaced by the output of layer " + std::to_string(trial.carried + 1));
  step.add_if(trial.ids, "of integers and passed first");
  step.add_if(trial.random,
              trial.preserves ? "random numbers" : "random numbers, other ones in a recompute");
  step.add_if(!trial.grad, "no gradients");
  step.add_if(trial.nodes_before > 0,
              counted(trial.nodes_before, "earlier node") + " on each worker");
  out << "; " << step.text();
  if (trial.offload) out << "; " << text_of(*trial.offload);
  return out;
}

namespace {

// Chooses how the layers form stages, what each stage keeps, and what the layers declare.
void draw_stages(Draws& draws, PipelineTrial& trial) {
  const int count = static_cast<int>(trial.layers.size());
  if (draws.one_in(3)) trial.balanced = draws.in(1, count + 1);
  for (NetLayer& layer : trial.layers) {
    layer.cost = draws.in(0, kCosts);
    layer.policy = static_cast<StagePolicy>(draws.in(0, kStagePolicies));
  }
  trial.policies = draws.one_in(3);
  if (trial.policies && !trial.offload) trial.offload = draw_options(draws);
  trial.isolated = draws.one_in(2);
  if (draws.one_in(16)) trial.stray = draws.one_in(2) ? Stray::kStash : Stray::kPop;
  trial.stray_layer = draws.in(0, count);
  trial.stray_of = draws.in(0, count);
}

// Freezes the first few layers or any layers, but not all.
void draw_frozen(Draws& draws, PipelineTrial& trial) {
  if (!draws.one_in(3)) return;
  const int count = static_cast<int>(trial.layers.size());
  const bool first_few = draws.one_in(2);
  const int first = draws.in(1, count);
  const int trained = draws.in(0, count);
  for (int i = 0; i < count; ++i) {
    const bool any = draws.one_in(2) && i != trained;
    trial.layers[static_cast<std::size_t>(i)].frozen = first_few ? i < first : any;
  }
}

}  // namespace

PipelineTrial draw_pipeline_trial(Draws& draws) {
  PipelineTrial trial;
  trial.kind = static_cast<PipelineKind>(draws.in(0, 4));
  trial.mode = static_cast<CheckpointMode>(draws.in(0, 3));
  trial.each = draws.in(1, 4);
  trial.backwards_order = draws.one_in(2);
  const int count = draws.in(2, static_cast<int>(kMostNetLayers) + 1);
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
  const bool interleaved = trial.kind == PipelineKind::kInterleaved;
  const int rounds = interleaved ? draws.in(1, 3) : 0;
  if (trial.kind == PipelineKind::kAutograd) trial.backwards = draws.in(1, 3);
  trial.steps = draws.in(1, 3);
  if (draws.one_in(3)) trial.offload = draw_options(draws);
  trial.passenger = draws.one_in(3);
  trial.grad = !draws.one_in(8);
  trial.nodes_before = draws.one_in(2) ? draws.in(1, 1000) : 0;
  draw_stages(draws, trial);
  if (interleaved) trial.microbatches = static_cast<int>(trial.devices()) * rounds;
  if (trial.offload) draw_backward_window(draws, *trial.offload);
  if (trial.passenger && draws.one_in(2)) trial.carried = draws.in(0, count);
  trial.random = draws.one_in(4);
  if (trial.random) trial.preserves = !draws.one_in(3);
  for (NetLayer& layer : trial.layers) layer.detached = draws.one_in(4);
  if (trial.passenger && trial.carried < 0) trial.ids = draws.one_in(2);
  draw_frozen(draws, trial);
  trial.ahead = draws.one_in(2);
  if (draws.one_in(4)) {
    trial.layers[static_cast<std::size_t>(draws.in(1, count))].writes = true;
  }
  if (draws.one_in(6)) {
    NetLayer& layer = trial.layers[static_cast<std::size_t>(draws.in(0, count))];
    layer.stops = true;
    layer.frozen = false;
  }
  return trial;
}

}  // namespace ferry::verify
