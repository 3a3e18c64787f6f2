// Runs a random network (pipeline_net.h) in the core's pipelines, on several simulated GPUs, and
// judges the run, for campaigns (verify/core/core_trials.cpp); try_pipeline.cpp says by what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "shared/pipeline/pipeline.h"
#include "shared/pipeline/scheduled_pipeline.h"
#include "shared/pipeline/stage_policy.h"
#include "shared/skip/layout.h"
#include "shared/skip/skippable.h"
#include "sim/check/vain_waits.h"
#include "sim/gpu/device.h"
#include "sim/gpu/workers.h"
#include "sim/program/autograd.h"
#include "sim/program/tape.h"
#include "sim/run/core.h"
#include "sim/run/training/hardware_model.h"
#include "sim/run/training/run_parts.h"
#include "sim/run/training/test_hardware.h"
#include "verify/oracles/asked_nodes.h"
#include "verify/oracles/crossings.h"
#include "verify/oracles/places.h"
#include "verify/oracles/recomputes.h"
#include "verify/oracles/stage_states.h"
#include "verify/programs/pipeline_net.h"
#include "verify/trials/fresh_workers.h"
#include "verify/trials/try_core.h"

namespace ferry::verify {

struct NetResult {
  std::vector<std::uint64_t> gradients;  // contents by weight; 0: none
  std::vector<std::uint64_t> losses;     // contents by micro-batch, of the last step; 0: none
  std::string state;                     // what is wrong with the autograd state that a layer sees
  std::vector<check::Hazard> hazards;
  std::string vain_wait;
  std::string misplaced, late;
  // The micro-batches in the order of their backwards, for each layer.
  std::vector<std::vector<std::size_t>> backwards;
  // The number of forwards before the first backward, for each layer.
  std::vector<std::optional<std::size_t>> ahead;
  std::string error;
  AskedNodeCounts nodes;
  std::int64_t vain_nodes = 0;
  std::optional<CrossingCounts> crossings;  // only for a pipeline
  OpCounts runs;                            // runs of kernels, by name
  std::vector<std::size_t> first_layers;    // of each stage
  std::vector<std::int64_t> packs;          // tensors that each stage's own hooks got
  std::int64_t callers_packs = 0;           // tensors that the caller's hooks got
  std::int64_t kept = 0;  // storages after backward, beyond weights, inputs, gradients and results
  std::int64_t left = 0;  // storages and events that are left at the end
};

class NetRun {
 public:
  using Value = sim::Value;
  using Values = std::vector<Value>;

  // Only a pipelined run checks for hazards. `watch` gets every operation.
  NetRun(const PipelineTrial& trial, bool pipelined, choices::Choices* choices = nullptr,
         StreamOpConsumer* watch = nullptr, const Rules& rules = {})
      : trial_(trial),
        net_(trial),
        first_(trial.first_layers(rules)),
        packs_(first_.size()),
        checkers_(pipelined ? sim::Checks::kAll : sim::Checks::kValues, {.reuse_at_free = true}) {
    for (std::size_t i = 0; i < trial.layers.size(); ++i) {
      names_.push_back(trial.isolated ? SkipName("skip", Namespace())
                                      : SkipName("of " + std::to_string(i)));
    }
    devices_ = pipelined ? trial.devices() : 1;
    sim::MachineOptions options;
    options.launch_ns = 500;
    options.links.latency_ns = 500;
    options.devices = static_cast<std::uint32_t>(devices_);
    machine_ = std::make_unique<sim::Machine>(options);
    machine_->add_consumer(&checkers_);
    machine_->add_consumer(&counter_);
    machine_->add_consumer(&waits_);
    if (pipelined) {
      machine_->add_consumer(&places_.emplace(*machine_));
      machine_->add_consumer(&crossings_.emplace(*machine_, devices_));
      nodes_.emplace(*machine_);
      states_.emplace(StageStates::Callers{trial.grad, kCallersAmbient.state.ambient, trial.random,
                                           trial.preserves});
    }
    if (watch) machine_->add_consumer(watch);
    std::vector<std::uint32_t> device_of(net_.b.program.globals.size(), 0);
    for (std::size_t i = 0; i < net_.weights.size(); ++i) {
      device_of[net_.weights[i]] = static_cast<std::uint32_t>(stage_of(i) % devices_);
    }
    tape_ = std::make_unique<sim::Tape>(net_.b.program, *machine_, times_, &checkers_.values(),
                                        device_of);
    for (std::size_t i = 0; places_ && i < net_.inputs.size(); ++i) {
      places_->input(sim::range_of(tape_->globals()[net_.inputs[i]].tensor), i);
      if (trial.ids) places_->input(sim::range_of(tape_->globals()[net_.ids[i]].tensor), i);
    }
    machine_->set_choices(choices);
  }

  std::size_t stage_of(std::size_t layer) const {
    return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), layer) -
                                    first_.begin()) -
           1;
  }
  // Runs layers [begin, end), with their stashes and pops.
  Values layers(std::size_t begin, std::size_t end, Values x) {
    const auto tracker = current_skip_tracker(tape_->autograd());
    for (std::size_t i = begin; i < end; ++i) {
      const NetLayer& layer = trial_.layers[i];
      Values in = {layer.stops ? Value{x.front().tensor, {}} : x.front()};
      if (layer.pops >= 0) {
        Value popped = tracker->load(names_[static_cast<std::size_t>(layer.pops)]);
        if (layer.uses) in.push_back(std::move(popped));
      }
      if (NetProgram::reads_passenger(trial_, i)) in.push_back(x.back());
      x.front() = tape_->call(net_.codes[i], std::move(in)).front();
      if (trial_.carried == static_cast<int>(i) && NetProgram::carries(trial_))
        x.back() = x.front();
      for (std::size_t to = i + 1; to < trial_.layers.size(); ++to) {
        if (trial_.layers[to].pops != static_cast<int>(i)) continue;
        tracker->save(names_[i], layer.detached ? Value{x.front().tensor, {}} : x.front());
      }
    }
    return x;
  }
  std::size_t end_of(std::size_t stage) const {
    return stage + 1 < first_.size() ? first_[stage + 1] : trial_.layers.size();
  }
  using Pair = std::shared_ptr<Hooks<sim::Tensor>>;
  using StageHooks = std::vector<Pair>;  // by device; may be empty
  // Returns hooks that count, for the stage, the tensors that the device's hooks get; or null.
  Pair hooks_of(std::size_t number, const StageHooks& hooks, StagePolicy policy) {
    if (hooks.empty() || (trial_.policies && trial_.policy(first_[number]) != policy)) return {};
    return std::make_shared<Counted>(hooks[number % devices_], packs_[number]);
  }
  std::function<Values(Values)> stage(std::size_t number, const StageHooks& hooks) {
    const Pair pair = hooks_of(number, hooks, StagePolicy::kOffload);
    return [this, number, pair](Values x) {
      std::optional<HooksGuard<sim::SimAutograd>> guard;
      if (pair) guard.emplace(tape_->autograd(), pair);
      x = ordered(std::move(x));
      note_state(number, x.front());
      return ordered(layers(first_[number], end_of(number), std::move(x)));
    };
  }
  void note_state(std::size_t stage, const Value& x) {
    auto autograd = tape_->autograd();
    const CheckpointContext context = checkpoint_context(autograd.hooks());
    const sim::AmbientState ambient = autograd.ambient({}, true).state;
    const std::size_t microbatch = places_->microbatch_of(sim::range_of(x.tensor)).value_or(0);
    states_->runs(stage, microbatch, trial_.runs_again(first_[stage], microbatch),
                  {autograd.grad_mode(), context.checkpointing, context.recomputing,
                   ambient.ambient, ambient.random});
    if (trial_.random) tape_->call(net_.noise, {});
  }
  // Returns what the layers declare, and their stages.
  SkipLayout layout(const Rules& rules) const {
    std::vector<Skippable> declared;
    std::vector<std::size_t> stages;
    for (std::size_t i = 0; i < trial_.layers.size(); ++i) {
      declared.push_back({"layer" + std::to_string(i), {}, {}});
      stages.push_back(stage_of(i));
      if (trial_.layers[i].pops < 0) continue;
      const auto from = static_cast<std::size_t>(trial_.layers[i].pops);
      declared[from].stashes.push_back(names_[from]);
      declared[i].pops.push_back(names_[from]);
    }
    if (trial_.stray != Stray::kNothing) {
      Skippable& layer = declared[static_cast<std::size_t>(trial_.stray_layer) % declared.size()];
      const bool stash = trial_.stray == Stray::kStash;
      (stash ? layer.stashes : layer.pops)
          .push_back(names_[static_cast<std::size_t>(trial_.stray_of) % names_.size()]);
    }
    return skip_layout(declared, stages, rules);
  }
  Values input(std::size_t microbatch) const {
    const Value& value = tape_->globals()[net_.inputs[microbatch]];
    if (trial_.ids) return {value, tape_->globals()[net_.ids[microbatch]]};
    return trial_.passenger ? Values{value, value} : Values{value};
  }
  // Swaps the values: between stages, integers come first. A second call swaps them back.
  Values ordered(Values x) const {
    if (trial_.ids) std::swap(x.front(), x.back());
    return x;
  }
  Value loss(const Values& x) {
    Values in = {x.front()};
    if (NetProgram::carries(trial_)) in.push_back(x.back());
    return tape_->call(net_.loss, std::move(in)).front();
  }

  // Runs the micro-batches one by one on one GPU. If the pipeline's backward takes several at once,
  // autograd sums their gradients first, and so does this.
  void plain() {
    auto autograd = tape_->autograd();
    const sim::SimAutograd::GradModeScope grad(autograd, trial_.grad);
    const sim::SimAutograd::AmbientScope ambient(autograd, kCallersAmbient);
    const auto m = static_cast<std::size_t>(trial_.microbatches);
    results_.resize(m);
    for (int again = 0; again < trial_.backwards * trial_.steps; ++again) {
      if (trial_.kind != PipelineKind::kAutograd) {
        for (std::size_t i = 0; i < m; ++i) plain(i, i + 1);
        continue;
      }
      const auto stop = static_cast<std::size_t>(trial_.recomputed());
      if (stop < m) plain(stop, m);
      for (std::size_t i = stop; i-- > 0;) plain(i, i + 1);
    }
  }
  void plain(std::size_t begin, std::size_t end) {
    auto autograd = tape_->autograd();
    Values roots;
    for (std::size_t i = begin; i < end; ++i) {
      const SkipTrackerGuard<sim::SimAutograd> guard(autograd,
                                                     std::make_shared<PlainSkips<Value>>());
      roots.push_back(loss(layers(0, trial_.layers.size(), input(i))));
    }
    if (trial_.grad) autograd.backward(roots, Values(roots.size()));
    std::move(roots.begin(), roots.end(), results_.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  template <class D>
  void pipelined(const std::vector<D>& devices, const Rules& rules) {
    StageHooks hooks;
    std::vector<Offloader<D, sim::SimAutograd>> offloaders;
    for (std::size_t d = 0; trial_.offload && d < devices.size(); ++d) {
      offloaders.emplace_back(devices[d], tape_->autograd(), *trial_.offload);
      for (const Slot weight : net_.weights) {
        offloaders.back().exempt(tape_->globals()[weight].tensor);
      }
      hooks.push_back(offloaders.back().hooks());
    }
    make_other_nodes();
    tape_->watch_nodes(&*nodes_);
    auto autograd = tape_->autograd();
    const sim::SimAutograd::GradModeScope grad(autograd, trial_.grad);
    const sim::SimAutograd::AmbientScope ambient(autograd, kCallersAmbient);
    for (int step = 0; step < trial_.steps; ++step) pipelined_step(devices, hooks, rules);
    while (!ahead_.empty()) {
      const bool last = trial_.backwards_order;
      std::vector<Values> outputs = std::move(last ? ahead_.back() : ahead_.front());
      ahead_.erase(last ? ahead_.end() - 1 : ahead_.begin());
      backward(std::move(outputs));
    }
  }
  // Makes earlier nodes on each worker. Threads number their nodes, and backward takes the highest
  // number first, so a worker's numbers may be far ahead of those of the step's own thread.
  void make_other_nodes() {
    auto autograd = tape_->autograd();
    for (std::uint32_t worker = 0; worker < devices_; ++worker) {
      machine_->set_host_thread(worker + 1);
      Value value = autograd.leaf({}, true);
      for (int i = 0; i < trial_.nodes_before; ++i) {
        value = autograd.node(Values{value}, Values{Value()}, nullptr).front();
      }
    }
    machine_->set_host_thread(0);
  }
  template <class D>
  void pipelined_step(const std::vector<D>& devices, const StageHooks& hooks, const Rules& rules) {
    auto autograd = tape_->autograd();
    states_->step_begins();
    places_->step_begins();
    if (trial_.goes_ahead()) return ahead_.push_back(forward(devices, hooks, rules));
    if (trial_.kind == PipelineKind::kAutograd) {
      return backward(forward(devices, hooks, rules));
    }
    const HooksGuard<sim::SimAutograd> callers(autograd, callers_hooks());
    std::vector<PipelineStage<sim::SimAutograd>::Function> stages;
    for (std::size_t s = 0; s < first_.size(); ++s) stages.push_back(stage(s, hooks));
    const auto kind = static_cast<ScheduleKind>(static_cast<int>(trial_.kind) - 1);
    ScheduledPipeline pipeline(devices, autograd, FreshWorkers(*machine_, autograd),
                               std::move(stages), layout(rules), kind, options(), rules);
    for (std::size_t s = 0; trial_.policies && s < first_.size(); ++s) {
      pipeline.save_inputs(s, hooks_of(s, hooks, StagePolicy::kCheckpointOffload));
    }
    results_ =
        pipeline.step(all_inputs(), [this](Values x, std::size_t) { return loss(ordered(x)); });
    count_kept();
  }
  // Runs forward in a pipeline whose backward belongs to autograd.
  template <class D>
  std::vector<Values> forward(const std::vector<D>& devices, const StageHooks& hooks,
                              const Rules& rules) {
    std::vector<PipelineStage<sim::SimAutograd>> stages;
    for (std::size_t s = 0; s < first_.size(); ++s) stages.push_back({s, stage(s, hooks)});
    auto autograd = tape_->autograd();
    const HooksGuard<sim::SimAutograd> callers(autograd, callers_hooks());
    Pipeline pipeline(devices, autograd, FreshWorkers(*machine_, autograd), std::move(stages),
                      layout(rules), options(), rules);
    return pipeline.forward(all_inputs());
  }

  NetResult result(const std::function<void()>& run) {
    NetResult result;
    try {
      run();
    } catch (const std::exception& error) {
      result.error = error.what();
    }
    result.kept = kept_;
    result.runs = counter_.counts;
    result.first_layers = first_;
    result.packs = packs_;
    result.callers_packs = callers_packs_;
    // If steps overlap, first runs and waits of a step are not known, so these are not checked.
    if (states_ && !trial_.goes_ahead()) result.state = states_->complaint();
    for (const Value& loss : results_) {
      result.losses.push_back(loss.tensor ? checkers_.values().read(sim::range_of(loss.tensor))
                                          : std::uint64_t{0});
    }
    results_.clear();
    ahead_.clear();
    for (const Slot slot : net_.weights) {
      const Value& gradient = tape_->gradients()[slot];
      result.gradients.push_back(
          gradient.tensor ? checkers_.values().read(sim::range_of(gradient.tensor)) : 0);
    }
    machine_->drain();
    result.left = machine_->live_storages() - known() + machine_->live_events();
    result.vain_wait = waits_.complaint();
    if (places_) result.misplaced = places_->misplaced();
    if (nodes_) {
      result.nodes = nodes_->counts();
      result.vain_nodes = nodes_->in_vain();
    }
    if (crossings_) result.crossings = crossings_->counts();
    if (places_ && !trial_.goes_ahead()) result.late = places_->late();
    for (std::size_t i = 0; places_ && i < trial_.layers.size(); ++i) {
      result.backwards.push_back(places_->order("grad" + std::to_string(i) + ".0"));
      result.ahead.push_back(places_->ahead(i));
    }
    result.hazards = checkers_.hazards(sim::noticed(*machine_, *tape_));
    return result;
  }
  sim::Machine& machine() { return *machine_; }
  std::size_t devices() const { return devices_; }

 private:
  // Passes tensors on to the pair and counts them. Null: autograd saves the tensor itself.
  class Counted final : public Hooks<sim::Tensor> {
   public:
    Counted(Pair pair, std::int64_t& packs) : pair_(std::move(pair)), packs_(packs) {}
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
      ++packs_;
      return pair_ ? pair_->pack(tensor) : nullptr;
    }

   private:
    const Pair pair_;
    std::int64_t& packs_;
  };

  Pair callers_hooks() { return std::make_shared<Counted>(nullptr, callers_packs_); }
  CorePipelineOptions options() const {
    CorePipelineOptions options;
    options.checkpoint = trial_.mode;
    options.preserve_rng_state = trial_.preserves;
    if (!trial_.policies) return options;
    for (const std::size_t first : first_) {
      options.checkpointed_stages.push_back(runs_again(trial_.policy(first)));
    }
    return options;
  }
  std::vector<Values> all_inputs() const {
    std::vector<Values> inputs;
    for (std::size_t i = 0; i < net_.inputs.size(); ++i) inputs.push_back(ordered(input(i)));
    return inputs;
  }
  void backward(std::vector<Values> outputs) {
    auto autograd = tape_->autograd();
    const std::size_t m = outputs.size();
    Values roots(m);
    const sim::SimDevice last(*machine_, static_cast<std::uint32_t>(devices_ - 1));
    const sim::SimDevice::StreamScope on(last, sim::SimDevice(last).compute_stream());
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t i = trial_.backwards_order ? m - 1 - k : k;
      roots[i] = loss(ordered(outputs[i]));
      outputs[i].clear();
    }
    outputs.clear();
    for (int again = trial_.grad ? trial_.backwards : 0; again > 0; --again) {
      places_->backward_begins();
      autograd.backward(roots, Values(m), /*retain_graph=*/again > 1);
    }
    results_ = std::move(roots);
    count_kept();
  }
  // Counts the storages that may exist at any time.
  std::int64_t known() const {
    std::set<const sim::StorageImpl*> known;  // only counted, never visited in order
    for (const auto* list : {&tape_->globals(), &tape_->gradients(), &results_}) {
      for (const Value& value : *list) {
        if (value.tensor) known.insert(value.tensor->storage.get());
      }
    }
    return static_cast<std::int64_t>(known.size());
  }
  void count_kept() { kept_ = machine_->live_storages() - known(); }

  // The autocast state of the caller.
  static constexpr sim::SimAutograd::Ambient kCallersAmbient{{.random = 0, .ambient = 5}, false};

  const PipelineTrial trial_;
  NetProgram net_;
  const std::vector<std::size_t> first_;  // layers of the stages
  std::vector<std::int64_t> packs_;       // by stage
  std::int64_t callers_packs_ = 0;
  std::vector<SkipName> names_;  // for the layers' outputs
  const Hardware hardware_ = sim::test_hardware();
  const sim::Roofline times_{hardware_};
  std::size_t devices_ = 1;
  sim::Checkers checkers_;
  OpCounter counter_;
  check::VainWaits waits_;
  std::optional<Places> places_;
  std::optional<Crossings> crossings_;
  std::optional<AskedNodes> nodes_;
  std::optional<StageStates> states_;
  std::unique_ptr<sim::Machine> machine_;
  std::unique_ptr<sim::Tape> tape_;
  Values results_;
  std::vector<std::vector<Values>> ahead_;  // outputs of steps whose backward has not run yet
  std::int64_t kept_ = 0;
};

// Trains on one GPU, without a pipeline.
NetResult run_plain(const PipelineTrial& trial);
NetResult run_pipelined(const PipelineTrial& trial, const Subject& subject = {},
                        const Conditions& conditions = {});

// Judges if each stage of a scheduled pipeline ran backward when its schedule says.
std::optional<Verdict> judge_schedule(const PipelineTrial& trial, const NetResult& run);

// Returns the verdict of the first oracle that objects, or nothing.
std::optional<Verdict> try_pipeline(const PipelineTrial& trial, const Subject& subject = {},
                                    const Conditions& conditions = {});

}  // namespace ferry::verify
