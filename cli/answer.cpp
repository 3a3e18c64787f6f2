#include "cli/answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "formats/printable.h"
#include "scenarios/hardware.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

using sim::KindBytes;
using sim::MemoryKind;

std::int64_t others(const KindBytes& kinds) {
  return kinds[MemoryKind::kBuffer] + kinds[MemoryKind::kInput] + kinds[MemoryKind::kWorkspace];
}

// Kept from step to step.
std::int64_t held(const KindBytes& kinds) {
  return kinds[MemoryKind::kParameter] + kinds[MemoryKind::kGradient] +
         kinds[MemoryKind::kOptimizer] + others(kinds);
}

// "a, b and c".
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

// "15.0 GiB of parameters, …", the largest first; what is less than a hundredth of it is left out.
std::string made_of(const KindBytes& kinds) {
  constexpr std::array<const char*, sim::kMemoryKinds> kWords = {
      "parameters", "buffers",     "inputs",     "gradients", "the optimizer's state",
      "workspaces", "activations", "temporaries"};
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (std::size_t i = 0; i < sim::kMemoryKinds; ++i) {
    if (kinds.of[i] * 100 < kinds.sum()) continue;
    parts.emplace_back(-kinds.of[i], fmt::format("{} of {}", format_bytes(kinds.of[i]), kWords[i]));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> words;
  for (const auto& [bytes, text] : parts) words.push_back(text);
  return joined(words);
}

// The fastest of the rows that are faster than `best` and do not fit.
const plan::PolicyRow* faster(const plan::PlanResult& result, const plan::PolicyRow& best) {
  const plan::PolicyRow* found = nullptr;
  for (const plan::PolicyRow& row : result.rows) {
    const bool candidate = !row.fits && !row.useless && row.is_safe() && row.least_bytes > 0;
    if (!candidate || row.simulation.step_ns >= best.simulation.step_ns) continue;
    if (!found || row.simulation.step_ns < found->simulation.step_ns) found = &row;
  }
  return found;
}

// The GPU waits for the host where operators end sooner than the next ones are issued.
std::string host_bound(const Hardware& hardware, const sim::Simulation& run) {
  const sim::Time idle = idle_for_host_ns(run);
  if (idle < run.step_ns / 10) return "";
  return fmt::format(
      " For {} of it the GPU waits for the host, which takes {} to issue an operator.",
      format_time(idle), format_time(hardware.launch_ns));
}

std::string pinning(const Hardware& hardware, const sim::Simulation& run) {
  if (run.host_peak_bytes == 0 || hardware.pin_bytes_per_us == 0) return "";
  const std::int64_t us = run.host_peak_bytes / hardware.pin_bytes_per_us;
  return fmt::format(" Pinning {} of host memory takes some {}, once.",
                     format_bytes(run.host_peak_bytes), format_time(us * 1000));
}

// Of a row of another allocator than asked for: how to have it, and what there is without it.
std::string allocator(const PolicyRequest& request, const plan::PlanResult& result,
                      const plan::PolicyRow& row) {
  if (row.alloc_conf == to_string(request.plan.alloc_conf)) return "";
  std::string text =
      fmt::format(" Train with PYTORCH_CUDA_ALLOC_CONF={} in the environment", row.alloc_conf);
  const plan::PolicyRow* next = nullptr;  // the fastest without it
  for (const plan::PolicyRow& each : result.rows) {
    if (each.alloc_conf == row.alloc_conf || !each.is_answer() || !each.has_plan()) continue;
    if (!next || each.simulation.step_ns < next->simulation.step_ns) next = &each;
  }
  if (!next) return text + ": without it nothing fits.";
  const std::int64_t slowdown = plan::slowdown_permille(next->simulation.step_ns, result.keep_ns);
  return text + fmt::format("; without it use {}: {}.", next->policy, thousandths(slowdown));
}

std::string use(const PolicyRequest& request, const plan::PlanResult& result,
                const plan::PolicyRow& row) {
  const std::int64_t budget = request.plan.budget_bytes;
  const std::int64_t slowdown = plan::slowdown_permille(row.simulation.step_ns, result.keep_ns);
  std::string text = fmt::format("Use {}: {} a step, {} of keep's time, in {} of {}.", row.policy,
                                 format_time(row.simulation.step_ns), thousandths(slowdown),
                                 format_bytes(row.least_bytes), format_bytes(budget));
  text += allocator(request, result, row);
  text += host_bound(request.hardware, row.simulation) + pinning(request.hardware, row.simulation);
  if (const plan::PolicyRow* next = faster(result, row)) {
    const std::int64_t more = next->least_bytes - budget;
    text += more > 0
                ? fmt::format(" {} is faster and does not fit: it needs {}, {} more.", next->policy,
                              format_bytes(next->least_bytes), format_bytes(more))
                : fmt::format(" {} is faster and does not fit: {}.", next->policy, next->refusal);
  }
  return text;
}

// What --times did not say: an answer by the roofline must not pass for a measured one.
std::string unmeasured(const PolicyRequest& request) {
  const TimesUsed& used = request.times_used;
  if (request.times.empty() || used.all == 0 || used.measured * 2 >= used.all) return "";
  const std::string how =
      used.measured + used.scaled == 0
          ? fmt::format(
                "None of these times was measured: --times has none of the {} operators as "
                "they are called here",
                used.all)
          : fmt::format("{} of the {} operators' times were measured as they are called here{}",
                        used.measured, used.all,
                        used.scaled == 0 ? "" : fmt::format(", {} scaled", used.scaled));
  return fmt::format(" {}; the {} by what {} can do.", how,
                     used.measured + used.scaled == 0 ? "times are" : "others are",
                     request.hardware.name);
}

struct Largest {
  std::string name;
  std::int64_t bytes = 0;
};

// The operator whose arguments and results are the largest: they are in memory at once.
Largest largest_operator(const Program& program) {
  Largest found;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* op = std::get_if<Op>(&statement.action);
      if (!op || op->read_bytes + op->written_bytes <= found.bytes) continue;
      found = {op->name, op->read_bytes + op->written_bytes};
    }
  }
  return found;
}

// The smallest shipped card that has so much, and what it has.
std::optional<Hardware> card_with(std::int64_t bytes) {
  std::optional<Hardware> found;
  for (const Hardware& card : list_hardware([](const InputError&) {})) {
    if (card.usable_bytes() < bytes) continue;
    if (!found || card.usable_bytes() < found->usable_bytes()) found = card;
  }
  return found;
}

std::string helps(const PolicyRequest& request, const plan::PolicyRow& least) {
  const KindBytes& kinds = least.simulation.peak_kinds;
  const sim::Training& training = request.plan.training;
  std::vector<std::string> ways;
  // A list as large as the parameters, and no activations: the peak is the optimizer's.
  const bool in_optimizer = kinds[MemoryKind::kActivation] < kinds[MemoryKind::kTemporary] &&
                            kinds[MemoryKind::kGradient] == kinds[MemoryKind::kParameter] &&
                            training.implementation == sim::OptimizerImplementation::kForeach;
  if (in_optimizer && kinds[MemoryKind::kOptimizer] > 0) {
    ways.push_back(fmt::format("--optimizer-implementation fused (no {} of temporaries)",
                               format_bytes(kinds[MemoryKind::kTemporary])));
  }
  if (kinds[MemoryKind::kOptimizer] > 0) {
    ways.push_back(
        fmt::format("an optimizer with less state (adamw has two tensors for each "
                    "parameter, sgd none: {} here)",
                    format_bytes(kinds[MemoryKind::kOptimizer])));
  }
  const std::int64_t rest = kinds.sum() - held(kinds);
  if (!in_optimizer && rest * 4 > kinds.sum()) ways.push_back("a smaller batch");
  if (held(kinds) > request.plan.budget_bytes) {
    ways.push_back(fmt::format("several GPUs that share the {} that every step holds",
                               format_bytes(held(kinds))));
  }
  if (const auto card = card_with(least.least_bytes)) {
    ways.push_back(fmt::format("a card with more memory ({} has {})", card->name,
                               format_bytes(card->usable_bytes())));
  }
  return ways.empty() ? "" : " What would help: " + joined(ways) + ".";
}

std::string nothing_fits(const PolicyRequest& request, const plan::PlanResult& result) {
  const plan::PolicyRow* least = nullptr;
  // Less of the device's memory is of no use where the host has not so much to pin.
  const auto key = [&](const plan::PolicyRow& row) {
    const bool pins = row.simulation.host_peak_bytes > request.hardware.host_memory_bytes;
    return std::pair(pins, row.least_bytes);
  };
  for (const plan::PolicyRow& row : result.rows) {
    if (row.least_bytes == 0 || row.useless || !row.is_safe()) continue;
    if (!least || key(row) < key(*least)) least = &row;
  }
  if (!least) return "";
  std::string text = fmt::format(
      "Nothing fits in {}. {} needs the least, {}: {}.", format_bytes(request.plan.budget_bytes),
      least->policy, format_bytes(least->least_bytes), made_of(least->simulation.peak_kinds));
  if (const Largest op = largest_operator(request.program); op.bytes > 0) {
    text += fmt::format(" The largest operator, {}, reads and writes {}.", printable(op.name),
                        format_bytes(op.bytes));
  }
  return text + helps(request, *least);
}

}  // namespace

std::string thousandths(std::int64_t of) { return fmt::format("{}.{:03}", of / 1000, of % 1000); }

sim::Time idle_for_host_ns(const sim::Simulation& run) {
  const sim::Time busy = run.compute_ns + run.compute_idle_for_copies_ns;
  return std::max<sim::Time>(run.step_ns - busy, 0);
}

std::string kinds_table(const plan::PlanResult& result) {
  std::string text = fmt::format("{:<18} {:>10} {:>11} {:>10} {:>10} {:>11} {:>11} {:>10}\n",
                                 "at its peak", "needs", "parameters", "gradients", "optimizer",
                                 "activations", "temporaries", "others");
  for (const plan::PolicyRow& row : result.rows) {
    const KindBytes& kinds = row.simulation.peak_kinds;
    text += fmt::format(
        "{:<18} {:>10} {:>11} {:>10} {:>10} {:>11} {:>11} {:>10}\n", row.policy,
        row.least_bytes > 0 ? format_bytes(row.least_bytes) : "-",
        format_bytes(kinds[MemoryKind::kParameter]), format_bytes(kinds[MemoryKind::kGradient]),
        format_bytes(kinds[MemoryKind::kOptimizer]), format_bytes(kinds[MemoryKind::kActivation]),
        format_bytes(kinds[MemoryKind::kTemporary]), format_bytes(others(kinds)));
  }
  return text;
}

nlohmann::ordered_json kinds_json(const KindBytes& kinds) {
  nlohmann::ordered_json json;
  for (std::size_t i = 0; i < sim::kMemoryKinds; ++i) {
    json[std::string(sim::kMemoryKindNames[i])] = kinds.of[i];
  }
  return json;
}

std::string answer(const PolicyRequest& request, const plan::PlanResult& result) {
  if (result.stopped || result.rows.empty()) return "";
  const plan::PolicyRow* best = plan::best_row(result);
  if (best && best->is_answer()) return use(request, result, *best) + unmeasured(request);
  return nothing_fits(request, result);
}

}  // namespace ferry::cli
