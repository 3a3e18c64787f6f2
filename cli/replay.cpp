// `ferry replay`: simulates a captured step under the options of a real run, and compares the
// decisions of both. Every run in the log is one step, and must decide as the simulated one does.
// If the first argument is a memory snapshot, it is replayed alone (cli/snapshot_replay.h).
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "cli/commands.h"
#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/shipped.h"
#include "cli/snapshot_replay.h"
#include "formats/decision_log.h"
#include "formats/error.h"
#include "formats/layout.h"
#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "formats/program_file.h"
#include "plan/mix.h"
#include "plan/planner.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "scenarios/l2.h"
#include "scenarios/programs.h"
#include "sim/run/simulation.h"

namespace ferry::cli {
namespace {

constexpr std::size_t kContext = 3;  // decisions shown before and after

struct ReplayArguments {
  std::string program;
  std::filesystem::path log;
  std::filesystem::path plan;
  std::string hardware = "rtx4090";  // decisions do not depend on it
  bool json = false;
};

// One step of the real run. Its decisions are renumbered as run 1, like the simulator's.
struct RealStep {
  std::uint64_t number = 1;
  std::vector<Decision> decisions;
  std::vector<std::uint64_t> lines;  // the decisions' lines in the log
};

struct Difference {
  const RealStep* run = nullptr;
  std::size_t at = 0;  // the first decision that differs
};

struct Replay {
  std::vector<RealStep> runs;
  std::vector<Decision> simulated;
  std::vector<PlanEntry> packs;       // numbered as the offloader counts them
  std::vector<std::string> segments;  // recomputed ones, numbered as a run counts them
  std::optional<Difference> difference;
};

// Uses the options of the plan, if there is one. Otherwise it uses those of the log, and segments
// run without checkpoints.
void set_options(const ReplayArguments& arguments, const DecisionLog& log,
                 const std::optional<Plan>& plan, sim::SimulationOptions& options) {
  options.segments = std::make_shared<const SegmentPlan>(SegmentPlan::closed());
  options.offload = log.options;
  if (!plan) {
    for (std::size_t i = 0; i < log.decisions.size(); ++i) {
      if (log.decisions[i].kind != DecisionKind::kRecompute) continue;
      throw InputError(arguments.log.string(), log.lines[i],
                       "this run recomputed: expected its plan with --plan FILE (without a plan "
                       "it cannot be replayed)");
    }
    return;
  }
  try {
    options.offload = planned_options(*plan);
    options.segments = planned_segments(*plan);
    options.spans = plan->spans;
  } catch (const std::invalid_argument& error) {
    throw InputError(arguments.plan.string(), 0, error.what());
  }
}

Program load(const std::string& name, const Hardware& hardware, const std::optional<Plan>& plan) {
  Program program = load_program(find_program(name));
  find_in_l2(hardware, program);  // before segments are added: they do not change these times
  try {
    return plan ? plan::with_segments(program, *plan) : plan::with_segments(program);
  } catch (const std::invalid_argument& error) {
    throw InputError(name, 0, error.what());
  }
}

plan::Survey survey_of(const ReplayArguments& arguments, const Program& program,
                       const Hardware& hardware, const std::optional<Plan>& plan) {
  if (!plan) return plan::survey(program, hardware);
  std::string mismatch;
  plan::Survey found;
  try {
    found = plan::survey(program, hardware, *plan);
    mismatch = plan::plan_mismatch(found, *plan);
  } catch (const std::invalid_argument& error) {
    mismatch = error.what();
  }
  if (!mismatch.empty()) throw InputError(arguments.plan.string(), 0, mismatch);
  return found;
}

std::vector<PlanEntry> packs_of(const std::optional<Plan>& plan, const plan::Survey& survey) {
  std::vector<PlanEntry> packs =
      plan ? plan->entries : plan::plan_entries(survey, plan::keep_all(survey));
  std::erase_if(packs, [](const PlanEntry& entry) {
    return entry.segment && entry.decision != PlanChoice::kOffload;
  });
  return packs;
}

std::vector<std::string> recomputed_of(const std::optional<Plan>& plan) {
  std::vector<std::string> names;
  if (!plan) return names;
  for (const PlanSegment& segment : plan->segments) {
    if (segment.recompute) names.push_back(segment.name);
  }
  return names;
}

std::vector<RealStep> runs_of(const DecisionLog& log) {
  std::map<std::uint64_t, RealStep> runs;
  for (std::size_t i = 0; i < log.decisions.size(); ++i) {
    Decision decision = log.decisions[i];
    RealStep& run = runs[decision.run];
    run.number = decision.run;
    decision.run = 1;
    run.decisions.push_back(decision);
    run.lines.push_back(log.lines[i]);
  }
  if (runs.empty()) runs[1] = {};  // the run decided nothing
  std::vector<RealStep> all;
  for (auto& [number, run] : runs) all.push_back(std::move(run));
  return all;
}

std::optional<Difference> first_difference(const Replay& replay) {
  for (const RealStep& run : replay.runs) {
    const auto [real, simulated] = std::mismatch(run.decisions.begin(), run.decisions.end(),
                                                 replay.simulated.begin(), replay.simulated.end());
    if (real != run.decisions.end() || simulated != replay.simulated.end()) {
      return Difference{&run, static_cast<std::size_t>(real - run.decisions.begin())};
    }
  }
  return std::nullopt;
}

std::string list(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  }
  return text + "]";
}

std::string describe(const Replay& replay, const std::vector<Decision>& decisions, std::size_t at) {
  if (at >= decisions.size()) return "nothing more";
  const Decision& decision = decisions[at];
  if (decision.kind == DecisionKind::kRecompute) {
    const bool named =
        decision.pack < replay.segments.size() && !replay.segments[decision.pack].empty();
    return fmt::format("recompute of segment {}{}", decision.pack,
                       named ? " (" + replay.segments[decision.pack] + ")" : "");
  }
  std::string text = fmt::format("{} of saved tensor {}, {} bytes", name(decision.kind),
                                 decision.pack, decision.bytes);
  if (decision.pack < replay.packs.size()) {
    const PlanEntry& tensor = replay.packs[decision.pack];
    text += fmt::format(" ({} {} of {})", name(tensor.layout.dtype), list(tensor.layout.shape),
                        tensor.op);
  }
  return text;
}

std::string to_text(const ReplayArguments& arguments, const Replay& replay) {
  if (!replay.difference) {
    return fmt::format("the same: {} {} of {} decisions\n", replay.runs.size(),
                       replay.runs.size() == 1 ? "run" : "runs", replay.simulated.size());
  }
  const auto& [run, at] = *replay.difference;
  const bool ends = at >= run->decisions.size();
  std::string text = fmt::format(
      "different: run {}, decision {}{}\n", run->number, at,
      ends ? std::string() : fmt::format(" ({}:{})", arguments.log.string(), run->lines[at]));
  for (std::size_t i = at < kContext ? 0 : at - kContext; i < at; ++i) {
    text += fmt::format("  both       {}\n", describe(replay, run->decisions, i));
  }
  const std::size_t longer = std::max(run->decisions.size(), replay.simulated.size());
  for (const bool real : {true, false}) {
    const auto& decisions = real ? run->decisions : replay.simulated;
    for (std::size_t i = at; i < std::min(at + kContext, longer); ++i) {
      text += fmt::format("{} {:<9}  {}\n", i == at ? '>' : ' ', real ? "real" : "simulated",
                          describe(replay, decisions, i));
      if (i >= decisions.size()) break;
    }
  }
  return text;
}

nlohmann::ordered_json to_json(const std::vector<Decision>& decisions, std::size_t at) {
  if (at >= decisions.size()) return nullptr;
  return {{"decision", name(decisions[at].kind)},
          {"pack", decisions[at].pack},
          {"bytes", decisions[at].bytes}};
}

nlohmann::ordered_json to_json(const Program& program, const Replay& replay) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"program", program.name},
                                 {"same", !replay.difference},
                                 {"runs", replay.runs.size()},
                                 {"decisions", replay.simulated.size()},
                                 {"difference", nullptr}};
  if (replay.difference) {
    const auto& [run, at] = *replay.difference;
    json["difference"] = {{"run", run->number},
                          {"index", at},
                          {"line", nullptr},
                          {"real", to_json(run->decisions, at)},
                          {"simulated", to_json(replay.simulated, at)}};
    if (at < run->lines.size()) json["difference"]["line"] = run->lines[at];
  }
  return json;
}

ExitCode run(const ReplayArguments& arguments) {
  if (is_snapshot(arguments.program)) {
    if (arguments.log.empty() && arguments.plan.empty()) {
      return replay_snapshot(arguments.program, arguments.json);
    }
    throw InputError(arguments.program, 0,
                     "a memory snapshot is replayed alone: expected no --decisions and no --plan");
  }
  if (arguments.log.empty()) {
    throw InputError("--decisions", 0,
                     "expected the decision log of a real run, or a memory snapshot instead of the "
                     "program");
  }
  std::optional<Plan> plan;
  if (!arguments.plan.empty()) plan = read_plan(arguments.plan);
  const Hardware hardware = find_hardware(arguments.hardware);
  const Program program = load(arguments.program, hardware, plan);
  const plan::Survey survey = survey_of(arguments, program, hardware, plan);
  const DecisionLog log = read_decision_log(arguments.log);
  Replay replay;
  sim::SimulationOptions options;
  set_options(arguments, log, plan, options);
  ProgressLine progress;
  options.offload->log = [&](const Decision& decision) {
    replay.simulated.push_back(decision);
    progress.show(replay.simulated.size(), 0, "decisions");
  };
  const sim::Simulation simulation = sim::simulate(program, hardware, options);
  progress.clear();
  for (const Decision& decision : replay.simulated) {
    if (decision.run != 1) {
      throw InputError(arguments.program, 0, "expected a step of one forward, not of several");
    }
  }
  replay.runs = runs_of(log);
  replay.packs = packs_of(plan, survey);
  replay.segments = recomputed_of(plan);
  replay.difference = first_difference(replay);
  if (arguments.json) {
    print_json(to_json(program, replay));
  } else {
    print_text(to_text(arguments, replay));
  }
  for (const sim::ProgramError& error : simulation.errors) {
    tell("{}:{}: {}", program.name, error.line, error.message);
  }
  for (const check::Hazard& hazard : simulation.hazards) {
    tell("{}: {}", program.name, to_string(hazard));
  }
  if (!simulation.errors.empty() || !simulation.hazards.empty()) return kViolated;
  return replay.difference ? kDiffers : kOk;
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command =
      app.add_subcommand("replay", "Compare a real run's decisions or memory with simulated ones");
  command->group("Plan and simulate");
  command->footer(R"(
Examples:
  ferry replay step.jsonl --decisions run.jsonl   compare the decisions of a real run
  ferry replay step.jsonl --decisions run.jsonl --plan step.plan   the same for a run with a plan
  ferry replay snapshot.pickle                    compare every address of a memory snapshot)");
  CLI::Option* program =
      command
          ->add_option("program", arguments->program,
                       "The captured program of the step, or a memory snapshot of PyTorch")
          ->required();
  command->add_option("--decisions", arguments->log, "The decision log of the real run")
      ->type_name("FILE");
  command->add_option("--plan", arguments->plan, "Simulate this plan, not the options in the log")
      ->type_name("FILE");
  CLI::Option* hardware =
      command->add_option("--card", arguments->hardware, "The card; decisions do not depend on it")
          ->type_name("NAME")
          ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  context.values[program] = shipped_programs;
  context.values[hardware] = shipped_cards;
  command->callback([arguments, &context] { context.exit_code = run(*arguments); });
}

}  // namespace ferry::cli
