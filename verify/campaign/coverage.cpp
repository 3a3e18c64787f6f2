#include "verify/campaign/coverage.h"

#include <algorithm>
#include <string_view>

namespace ferry::verify {
namespace {

class Features {
 public:
  explicit Features(Coverage& coverage) : coverage_(coverage) {}
  void has(std::string_view name, bool yes = true) {
    if (yes && !name.empty()) ++coverage_.features[std::string(name)];
  }

 private:
  Coverage& coverage_;
};

void add_recipe(const Recipe& recipe, Features& features) {
  const auto any = [&recipe](auto has) {
    return std::any_of(recipe.layers.begin(), recipe.layers.end(), has);
  };
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const auto found = static_cast<LayerKind>(kind);
    features.has(name(found), any([found](const Layer& layer) { return layer.kind == found; }));
  }
  features.has("several micro-batches", recipe.microbatches > 1);
  features.has(name(recipe.order), recipe.microbatches > 1);
  features.has("retain_graph", recipe.retain);
  features.has("second derivative", recipe.derivatives == 2);
  features.has("third derivative", recipe.derivatives == 3);
  features.has("input without a gradient", !recipe.embeds);
  features.has("frozen layers", any([](const Layer& layer) { return layer.frozen; }));
  features.has("parameter moves", recipe.move);
  features.has(name(recipe.failure));
  features.has("checkpoints", recipe.segments);
  if (!recipe.segments) return;
  features.has("whole forward checkpointed", recipe.whole);
  features.has("nested segments", any([](const Layer& layer) { return layer.opens > 1; }));
  const auto bit = [&any](int bits) {
    return any(
        [bits](const Layer& layer) { return layer.opens > 0 && (layer.segment & bits) != 0; });
  };
  features.has("no early stop", bit(kNoEarlyStop));
  features.has("segment on its own stream", bit(kOwnStream));
  const auto reentrant = [](const Layer& layer) {
    return layer.opens > 0 && is_reentrant(layer.segment);
  };
  features.has("reentrant segment", any(reentrant) && recipe.derivatives == 1);
  features.has("segment as spans of operators", bit(kSpanBit));
  for (int extra = 1; extra < kExtras; ++extra) {
    const auto found = static_cast<Extra>(extra);
    features.has(name(found), any([found](const Layer& layer) { return layer.extra == found; }));
  }
}

void add_options(const CoreOptions& options, Features& features) {
  features.has("pageable memory", options.host_memory == HostMemory::kPageable);
  features.has("no copy streams", options.copy_streams == CopyStreams::kNone);
  features.has("one copy stream", options.copy_streams == CopyStreams::kOne);
  features.has("two copy streams", options.copy_streams == CopyStreams::kTwo);
  features.has("reloads in the copy stream's pool", options.reload_pool == ReloadPool::kCopyStream);
  features.has("prefetch", options.prefetch_bytes != 0);
  features.has("backward window", options.prefetch_tensors != kUnlimited);
  features.has("automatic bounds",
               options.window_bytes == kAutomatic || options.hold_bytes == kAutomatic);
  features.has("some packs kept", !options.offload.empty());
}

void add_pipeline(const PipelineTrial& trial, Features& features) {
  features.has("pipeline");
  features.has("stages cut by cost", trial.balanced > 0);
  features.has("a policy for each stage", trial.policies);
  features.has("skip tensors in namespaces", trial.isolated);
  features.has("stages that draw random numbers", trial.random);
  features.has("integers through every stage", trial.ids);
  features.has("several forwards before a backward", trial.goes_ahead());
  features.has("frozen layers", std::ranges::any_of(trial.layers, [](const NetLayer& layer) {
                 return layer.frozen;
               }));
  features.has("stopped gradients", std::ranges::any_of(trial.layers, [](const NetLayer& layer) {
                 return layer.stops;
               }));
  features.has(
      "writes in place in a pipeline",
      std::ranges::any_of(trial.layers, [](const NetLayer& layer) { return layer.writes; }));
  features.has("two values with gradients", trial.passenger && trial.carried >= 0);
  features.has("wrong declarations of skip tensors", trial.stray != Stray::kNothing);
}

}  // namespace

void Coverage::add(const DrawnRun& drawn) {
  ++programs;
  runs += drawn.runs;
  classes += drawn.classes;
  cut_off += drawn.cut_off ? 1 : 0;
  const RunSpec& spec = drawn.spec;
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i] += drawn.asked[i];
  chosen += drawn.chosen ? 1 : 0;
  failures += drawn.failed ? 1 : 0;
  Features found(*this);
  if (spec.is_pipeline()) {
    add_pipeline(spec.pipeline, found);
    if (spec.pipeline.offload) add_options(*spec.pipeline.offload, found);
    return;
  }
  if (spec.scheduler && spec.scheduler->program) return;
  add_recipe(spec.trial.recipe, found);
  if (!spec.scheduler) add_options(spec.trial.options, found);
  found.has("planned spans of operators", has_spans(spec.trial));
  found.has("chain of segments", spec.trial.recipe.sequence > 0);
  found.has("selective checkpoints", is_selective(spec.trial));
  found.has("selective plan", spec.trial.recipe.segments && spec.trial.plan != nullptr);
}

Coverage& Coverage::operator+=(const Coverage& other) {
  programs += other.programs;
  runs += other.runs;
  classes += other.classes;
  cut_off += other.cut_off;
  operations += other.operations;
  device_operations += other.device_operations;
  chosen += other.chosen;
  schedules += other.schedules;
  failures += other.failures;
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += other.steps[i];
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i] += other.asked[i];
  for (const auto& [name, count] : other.features) features[name] += count;
  return *this;
}

void OperationCount::operator()(const StreamOp& op) {
  ++coverage_.operations;
  coverage_.device_operations += is_device_operation(op.kind) ? 1 : 0;
  ++coverage_.steps[static_cast<std::size_t>(op.step)];
  if (next_) (*next_)(op);
}

}  // namespace ferry::verify
