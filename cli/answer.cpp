#include "cli/answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/nothing_fits.h"
#include "cli/what_helps.h"
#include "scenarios/units.h"

namespace ferry::cli {

namespace {

using sim::KindBytes;
using sim::MemoryKind;

// A plan as slow as this, in thousandths of keep's time, is worth another look at the training.
constexpr std::int64_t kSlow = 1020;

std::int64_t others(const KindBytes& kinds) {
  return kinds[MemoryKind::kBuffer] + kinds[MemoryKind::kInput] + kinds[MemoryKind::kWorkspace];
}

// Returns the fastest row that is faster than `best` but does not fit; null if there is none.
const plan::PolicyRow* faster(const plan::PlanResult& result, const plan::PolicyRow& best) {
  const plan::PolicyRow* found = nullptr;
  for (const plan::PolicyRow& row : result.rows) {
    const bool candidate = !row.fits && !row.useless && row.is_safe() && row.least_bytes > 0;
    if (!candidate || row.simulation.step_ns >= best.simulation.step_ns) continue;
    if (!found || row.simulation.step_ns < found->simulation.step_ns) found = &row;
  }
  return found;
}

// Warns if the GPU waits for the host for at least a tenth of the step: operators end before the
// host has issued the next ones.
std::string host_bound(const Hardware& hardware, const sim::Simulation& run) {
  const sim::Time idle = idle_for_host_ns(run);
  if (idle < run.step_ns / 10) return "";
  return fmt::format(
      " For {} of each step the GPU waits for the host, which takes {} to issue an operator.",
      format_time(idle), format_time(hardware.launch_ns));
}

std::string pinning(const Hardware& hardware, const sim::Simulation& run) {
  if (run.host_peak_bytes == 0 || hardware.pin_bytes_per_us == 0) return "";
  const std::int64_t us = run.host_peak_bytes / hardware.pin_bytes_per_us;
  return fmt::format(" Pinning {} of host memory takes about {}, once.",
                     format_bytes(run.host_peak_bytes), format_time(us * 1000));
}

// If the row uses other allocator options than the request: says how to set them, and which policy
// to use without them.
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
  if (!next) return text + "; nothing fits without it.";
  const std::int64_t slowdown = plan::slowdown_permille(next->simulation.step_ns, result.keep_ns);
  return text + fmt::format("; without it, use {}: {} of keep's time.", next->policy,
                            thousandths(slowdown));
}

// Warns if the plan leaves less than 2 % of the card free, or less than 0.5 GiB if that is less.
// The CUDA context of this process is not part of usable memory; other processes are not known.
std::string headroom(const Hardware& hardware, const plan::PolicyRow& row) {
  const std::int64_t usable = hardware.usable_bytes();
  const std::int64_t room = std::min<std::int64_t>(usable / 50, std::int64_t{1} << 29);
  const std::int64_t left = usable - row.least_bytes;
  if (left < 0 || left >= room) return "";
  return fmt::format(
      " It leaves {} of the card free: if a display or another process uses the card as well, plan "
      "with a smaller --budget.",
      format_bytes(left));
}

std::string use(const PolicyRequest& request, const plan::PlanResult& result,
                const plan::PolicyRow& row) {
  const std::int64_t budget = request.plan.budget_bytes;
  const std::int64_t slowdown = plan::slowdown_permille(row.simulation.step_ns, result.keep_ns);
  const bool as_it_is = row.policy == name(Policy::kKeep);
  std::string text =
      as_it_is ? fmt::format("Use keep, the training as it is: {} a step, in {} of {}.",
                             format_time(row.simulation.step_ns), format_bytes(row.least_bytes),
                             format_bytes(budget))
               : fmt::format("Use {}: {} a step, {} of keep's time, in {} of {}.", row.policy,
                             format_time(row.simulation.step_ns), thousandths(slowdown),
                             format_bytes(row.least_bytes), format_bytes(budget));
  text += allocator(request, result, row);
  text += headroom(request.hardware, row);
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

// Says how many times were measured if --times covers less than half of the operators: an answer
// from estimated times must not look like a measured one.
std::string unmeasured(const PolicyRequest& request) {
  const TimesUsed& used = request.times_used;
  if (request.times.empty() || used.all == 0 || used.measured * 2 >= used.all) return "";
  const std::string how =
      used.measured + used.scaled == 0
          ? fmt::format(
                "None of these times was measured: --times has none of the {} operators with "
                "these arguments",
                used.all)
          : fmt::format("{} of the {} operators' times were measured with these arguments{}",
                        used.measured, used.all,
                        used.scaled == 0 ? "" : fmt::format(", {} scaled", used.scaled));
  return fmt::format(" {}; the {} estimated from the rates of {}.", how,
                     used.measured + used.scaled == 0 ? "times are" : "others are",
                     request.hardware.name);
}

}  // namespace

std::string thousandths(std::int64_t of) { return fmt::format("{}.{:03}", of / 1000, of % 1000); }

sim::Time idle_for_host_ns(const sim::Simulation& run) {
  const sim::Time busy = run.compute_ns + run.compute_idle_for_copies_ns;
  return std::max<sim::Time>(run.step_ns - busy, 0);
}

std::string kinds_table(const plan::PlanResult& result) {
  std::string text =
      fmt::format("{:<18} {:>11} {:>10} {:>10} {:>11} {:>11} {:>10}\n", "at its peak", "parameters",
                  "gradients", "optimizer", "activations", "temporaries", "others");
  for (const plan::PolicyRow& row : result.rows) {
    if (!row.simulation.errors.empty()) continue;
    const KindBytes& kinds = row.simulation.peak_kinds;
    text += fmt::format(
        "{:<18} {:>11} {:>10} {:>10} {:>11} {:>11} {:>10}\n", row.policy,
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

std::string answer(const PolicyArguments& arguments, const PolicyRequest& request,
                   const plan::PlanResult& result) {
  if (result.stopped || result.rows.empty()) return "";
  const plan::PolicyRow* best = plan::best_row(result);
  if (!best || !best->is_answer()) return nothing_fits(arguments, request, result);
  std::string text = use(request, result, *best) + unmeasured(request);
  if (plan::slowdown_permille(best->simulation.step_ns, result.keep_ns) >= kSlow) {
    const std::string helps = helps_to_speed(request, result, *best);
    if (!helps.empty()) text += "\nWhat would make it faster, each planned alone:" + helps;
  }
  return text;
}

}  // namespace ferry::cli
