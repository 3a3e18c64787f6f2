// Gradients and losses must equal those of a training without a pipeline on one GPU. There must be
// no hazard and no leak. Checked, too: the device of each kernel, the order and number of runs,
// what hooks get, the cut into stages, and the nodes and transfers between them
// (pipeline_picture.h). A trial that is wrong on purpose must be rejected.
//
// Not checked: autograd's order and the counts, if the caller starts backward and a layer stops
// gradients; nodes and transfers, if any layer does; the autograd state that layers see and late
// recomputes, if steps overlap (goes_ahead). After an injected failure only hazards, leaks, the
// error and the gradients are judged, or the rejection of a write.
#include "verify/trials/try_pipeline.h"

#include <algorithm>

#include "verify/oracles/cuts.h"
#include "verify/oracles/errors.h"
#include "verify/oracles/hazards.h"
#include "verify/trials/pipeline_picture.h"

namespace ferry::verify {

NetResult run_plain(const PipelineTrial& trial) {
  NetRun run(trial, false);
  return run.result([&] { run.plain(); });
}

NetResult run_pipelined(const PipelineTrial& trial, const Subject& subject,
                        const Conditions& conditions) {
  NetRun run(trial, true, conditions.choices, conditions.watch, subject.rules);
  // Makes the devices of the run, each with the same adaptor.
  const auto with = [&]<class D>(const auto& adapted, std::vector<D> devices) {
    for (std::uint32_t d = 0; d < run.devices(); ++d) {
      devices.emplace_back(sim::SimDevice(run.machine(), d), adapted);
    }
    run.pipelined(devices, subject.rules);
  };
  return run.result([&] {
    if (conditions.choices && !subject.mutation) {
      with(sim::fault_of(*conditions.choices), std::vector<Faulty<sim::SimDevice>>());
    } else {
      with(subject.mutation, std::vector<Bent<sim::SimDevice>>());
    }
  });
}

namespace {

// A stage that writes an input which it must not write must be rejected.
std::optional<Verdict> judge_refused(std::size_t stage, const NetResult& run) {
  const std::string text = "stage " + std::to_string(stage) + " writes in place its input, ";
  if (!run.error.starts_with(text)) {
    return Verdict{Oracle::kError,
                   "stage " + std::to_string(stage) +
                       " writes an input that it must not write, without the expected error" +
                       (run.error.empty() ? "" : ": " + run.error)};
  }
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (run.left == 0) return std::nullopt;
  return Verdict{Oracle::kLeak, "something is left after a write that was rejected"};
}

// A failed step must leave nothing, and its cause must be reported; or the core recovered.
std::optional<Verdict> judge_failure(const NetResult& expected, const NetResult& run) {
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (run.left != 0) return Verdict{Oracle::kLeak, "something is left after a step that failed"};
  if (is_told_failure(run.error)) return std::nullopt;
  if (!run.error.empty())
    return Verdict{Oracle::kError, "the cause of a failure was lost: " + run.error};
  if (run.gradients != expected.gradients)
    return Verdict{Oracle::kValue, "a failure changed a gradient"};
  return std::nullopt;
}

std::string skip_of(int layer) { return "of " + std::to_string(layer); }

// Skip tensors that are not declared once in each direction must be rejected before anything runs.
std::optional<Verdict> judge_declared(const PipelineTrial& trial, const NetResult& run) {
  std::vector<DeclaredSkip> declared;
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    const int pops = trial.layers[i].pops;
    if (pops < 0) continue;
    declared.push_back({static_cast<std::size_t>(pops), false, skip_of(pops)});
    declared.push_back({i, true, skip_of(pops)});
  }
  const auto count = static_cast<int>(trial.layers.size());
  declared.push_back({static_cast<std::size_t>(trial.stray_layer % count),
                      trial.stray == Stray::kPop, skip_of(trial.stray_of % count)});
  for (const std::string& skip : unmatched(declared)) {
    const std::string name = trial.isolated ? "skip" : skip;
    if (run.error.starts_with("one or more pairs of stash and pop do not match:") &&
        run.error.find("'" + name + "'") != std::string::npos) {
      continue;
    }
    return Verdict{Oracle::kError, "wrong declarations of '" + name + "' were accepted" +
                                       (run.error.empty() ? "" : ": " + run.error)};
  }
  if (run.runs.empty()) return std::nullopt;
  return Verdict{Oracle::kError, "layers ran although their declarations are wrong"};
}

std::optional<Verdict> judge_cut(const PipelineTrial& trial, const NetResult& run) {
  if (trial.balanced == 0) return std::nullopt;
  std::vector<std::size_t> first = {0};
  for (const std::size_t size : best_cut(trial.costs(), trial.stages())) {
    first.push_back(first.back() + size);
  }
  first.pop_back();
  if (run.first_layers == first) return std::nullopt;
  std::string words = "stages begin at layers";
  for (const std::size_t layer : run.first_layers) words += " " + std::to_string(layer + 1);
  words += ", which is balanced worse than";
  for (const std::size_t layer : first) words += " " + std::to_string(layer + 1);
  return Verdict{Oracle::kCut, words};
}

// Returns how many tensors a layer's node saves: its inputs and its weight.
std::int64_t saves_of(const PipelineTrial& trial, std::size_t layer) {
  const bool pops = trial.layers[layer].pops >= 0 && trial.layers[layer].uses;
  return 2 + (pops ? 1 : 0) + (NetProgram::reads_passenger(trial, layer) ? 1 : 0);
}

// Returns how many tensors the nodes of layers [begin, end) save for a micro-batch.
std::int64_t saves_of(const PipelineTrial& trial, const NetGraphs& graphs, std::size_t begin,
                      std::size_t end, std::size_t microbatch) {
  std::int64_t saved = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (graphs.makes_node(i, microbatch)) saved += saves_of(trial, i);
  }
  return saved;
}

// Autograd's backward must reach a layer with the last micro-batch first, of those that have nodes,
// because each waits for the next one. The order of the first stage follows from the second stage.
std::optional<Verdict> judge_order(const PipelineTrial& trial, const NetGraphs& graphs,
                                   const NetResult& run) {
  if (trial.kind != PipelineKind::kAutograd || run.first_layers.size() == 1) return std::nullopt;
  const bool skips =
      std::ranges::any_of(trial.layers, [](const NetLayer& each) { return each.pops >= 0; });
  if (trial.grad && !skips && !run.late.empty()) return Verdict{Oracle::kSchedule, run.late};
  for (std::size_t i = 0; i < run.backwards.size(); ++i) {
    std::vector<std::size_t> expected;
    for (auto k = static_cast<std::size_t>(trial.microbatches); k-- > 0;) {
      if (graphs.makes_node(i, k)) expected.push_back(k);
    }
    const std::vector<std::size_t>& order = run.backwards[i];
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (!expected.empty() && order[k] == expected[k % expected.size()]) continue;
      return Verdict{Oracle::kSchedule, "layer " + std::to_string(i) + " takes micro-batch " +
                                            std::to_string(order[k]) + " in backward out of order"};
    }
  }
  return std::nullopt;
}

// Returns how many micro-batches run forward in a stage before its first backward, as published for
// the schedules. 1F1B warms up with one for each device behind the stage. Megatron-LM's interleaved
// schedule warms up with two for each of these, and one for each device and each stage of a device
// but the last. After that, forwards and backwards alternate. (Stages of one device take turns,
// with one micro-batch for each device; backward begins with the last stage.)
std::size_t goes_ahead(const PipelineTrial& trial, std::size_t stage) {
  const std::size_t devices = trial.devices(), each = trial.stages_each();
  const auto microbatches = static_cast<std::size_t>(trial.microbatches);
  const std::size_t behind = devices - 1 - stage % devices;
  if (trial.kind == PipelineKind::kGpipe) return microbatches;
  if (trial.kind == PipelineKind::k1F1B) return std::min(microbatches, behind + 1);
  const std::size_t turn = stage / devices;
  const std::size_t backwards_before = (each - 1 - turn) * devices;
  const std::size_t warm_up = 2 * behind + (each - 1) * devices;
  const std::size_t forwards = std::min(microbatches * each, warm_up + 1 + backwards_before);
  std::size_t ahead = 0;
  for (std::size_t k = 0; k < forwards; ++k) ahead += k / devices % each == turn ? 1 : 0;
  return ahead;
}

}  // namespace

std::optional<Verdict> judge_schedule(const PipelineTrial& trial, const NetResult& run) {
  if (trial.kind == PipelineKind::kAutograd) return std::nullopt;
  std::size_t stage = 0;
  for (std::size_t layer = 0; layer < run.ahead.size(); ++layer) {
    while (stage + 1 < run.first_layers.size() && run.first_layers[stage + 1] <= layer) ++stage;
    const std::size_t must = goes_ahead(trial, stage);
    if (!run.ahead[layer] || *run.ahead[layer] == must) continue;
    return Verdict{Oracle::kSchedule,
                   "layer " + std::to_string(layer) + " runs " + std::to_string(*run.ahead[layer]) +
                       " forwards before its first backward, not " + std::to_string(must)};
  }
  return std::nullopt;
}

namespace {

// Checks how often each layer runs, and what each stage's own hooks get.
std::optional<Verdict> judge_counts(const PipelineTrial& trial, const NetGraphs& graphs,
                                    const NetResult& run) {
  const std::int64_t stop = trial.recomputed();
  const auto microbatches = static_cast<std::size_t>(trial.microbatches);
  for (std::size_t s = 0; s < run.first_layers.size(); ++s) {
    const std::size_t begin = run.first_layers[s];
    const std::size_t end =
        s + 1 < run.first_layers.size() ? run.first_layers[s + 1] : trial.layers.size();
    const StagePolicy policy = trial.policy(begin);
    const bool moves_inputs = policy == StagePolicy::kCheckpointOffload;
    const bool again = !trial.policies || policy == StagePolicy::kCheckpoint || moves_inputs;
    const std::int64_t runs =
        trial.steps * (trial.microbatches + (again ? stop * trial.backwards : 0));
    std::int64_t arriving = trial.passenger ? 2 : 1;
    for (std::size_t i = begin; i < end; ++i) {
      const int pops = trial.layers[i].pops;
      if (pops >= 0 && static_cast<std::size_t>(pops) < begin) ++arriving;
      const auto found = run.runs.find("layer" + std::to_string(i));
      const std::int64_t ran = found == run.runs.end() ? 0 : found->second;
      if (ran == runs) continue;
      return Verdict{Oracle::kCount, "layer " + std::to_string(i) + " ran " + std::to_string(ran) +
                                         " times, not " + std::to_string(runs)};
    }
    if (!trial.policies) continue;
    std::int64_t packs = moves_inputs ? trial.steps * stop * arriving : 0;
    const bool offloads = policy == StagePolicy::kOffload && trial.grad;
    for (std::size_t i = 0; offloads && i < microbatches; ++i) {
      packs += trial.steps * saves_of(trial, graphs, begin, end, i);
    }
    if (run.packs[s] == packs) continue;
    return Verdict{Oracle::kAccounts, "stage " + std::to_string(s + 1) + " gave its hooks " +
                                          std::to_string(run.packs[s]) + " tensors, not " +
                                          std::to_string(packs)};
  }
  return std::nullopt;
}

// Returns how many tensors autograd saves under the caller's hooks: those of stages without hooks
// of their own, the inputs of checkpoints and what they popped, and the loss if the pipeline makes
// it.
std::int64_t callers_packs(const PipelineTrial& trial, const NetGraphs& graphs,
                           const NetResult& run) {
  if (!trial.grad) return 0;
  const bool scheduled = trial.kind != PipelineKind::kAutograd;
  const std::size_t stages = run.first_layers.size();
  std::int64_t packs = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t begin = run.first_layers[s];
    const std::size_t end = s + 1 < stages ? run.first_layers[s + 1] : trial.layers.size();
    const StagePolicy policy = trial.policy(begin);
    const bool own = trial.policies ? policy == StagePolicy::kOffload : trial.offload.has_value();
    const std::int64_t stop = trial.runs_again(begin, 0) ? trial.recomputed() : 0;
    std::int64_t inputs = trial.passenger ? 2 : 1;
    for (std::size_t i = begin; i < end; ++i) {
      const int pops = trial.layers[i].pops;
      if (pops >= 0 && static_cast<std::size_t>(pops) < begin) ++inputs;
    }
    // Autograd recomputes a stage after the caller's hooks were removed.
    const auto first = static_cast<std::size_t>(scheduled ? 0 : stop);
    for (std::size_t i = first; !own && i < static_cast<std::size_t>(trial.microbatches); ++i) {
      packs += saves_of(trial, graphs, begin, end, i);
    }
    if (!scheduled) packs += 2 * inputs * stop;
  }
  if (scheduled) packs += trial.microbatches * (NetProgram::carries(trial) ? 2 : 1);
  return packs * trial.steps;
}

std::optional<Verdict> judge_state(const PipelineTrial& trial, const NetGraphs& graphs,
                                   const NetResult& run) {
  if (!run.state.empty()) return Verdict{Oracle::kValue, run.state};
  const std::int64_t packs = callers_packs(trial, graphs, run);
  if (run.callers_packs == packs) return std::nullopt;
  return Verdict{Oracle::kAccounts, "the caller's hooks were given " +
                                        std::to_string(run.callers_packs) + " tensors, not " +
                                        std::to_string(packs)};
}

// Checks the graph between the stages, and the transfers between devices.
std::optional<Verdict> judge_picture(const PipelinePicture& picture, const NetResult& run) {
  if (run.vain_nodes != 0) {
    return Verdict{Oracle::kMoves, std::to_string(run.vain_nodes) +
                                       " nodes were requested that no gradient can reach"};
  }
  const std::string nodes = difference(run.nodes, picture.nodes());
  if (!nodes.empty()) return Verdict{Oracle::kCount, nodes};
  const std::string crossings = run.crossings->difference(picture.crossings());
  if (!crossings.empty()) return Verdict{Oracle::kMoves, crossings};
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> try_pipeline(const PipelineTrial& trial, const Subject& subject,
                                    const Conditions& conditions) {
  const NetResult expected = run_plain(trial);
  NetResult run = run_pipelined(trial, subject, conditions);
  if (conditions.choices && conditions.choices->failure()) {
    // Pipelines do not count what their stages' offloaders could not protect, so all of it is
    // forgiven.
    forgive_frees(run.hazards, Uses::kOfAll);
    const auto refused = trial.refused_stage();
    if (refused && !is_told_failure(run.error)) return judge_refused(*refused, run);
    return judge_failure(expected, run);
  }
  if (trial.stray != Stray::kNothing) return judge_declared(trial, run);
  if (const auto stage = trial.refused_stage()) return judge_refused(*stage, run);
  if (!run.error.empty()) return Verdict{Oracle::kError, run.error};
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (run.gradients != expected.gradients) return Verdict{Oracle::kValue, "a gradient differs"};
  if (run.losses != expected.losses) return Verdict{Oracle::kValue, "a loss differs"};
  if (!run.vain_wait.empty()) return Verdict{Oracle::kMoves, run.vain_wait};
  if (!run.misplaced.empty()) return Verdict{Oracle::kPlace, run.misplaced};
  const NetGraphs graphs(trial);
  // Autograd does not reach the layers before one that stops gradients, except by way of a stash.
  const bool stops =
      std::ranges::any_of(trial.layers, [](const NetLayer& layer) { return layer.stops; });
  const bool comes_to_all = !stops || trial.kind != PipelineKind::kAutograd;
  if (comes_to_all) {
    if (const auto wrong = judge_order(trial, graphs, run)) return wrong;
    if (const auto wrong = judge_counts(trial, graphs, run)) return wrong;
  }
  if (const auto wrong = judge_schedule(trial, run)) return wrong;
  if (const auto wrong = judge_cut(trial, run)) return wrong;
  if (run.kept > 0) {
    return Verdict{Oracle::kLeak, std::to_string(run.kept) + " storages are left after backward"};
  }
  if (run.left != 0) return Verdict{Oracle::kLeak, "something is left after the step"};
  if (auto wrong = judge_state(trial, graphs, run)) return wrong;
  if (stops) return std::nullopt;
  return judge_picture(PipelinePicture(trial, graphs), run);
}

}  // namespace ferry::verify
