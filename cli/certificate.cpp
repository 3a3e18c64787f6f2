#include "cli/certificate.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/units.h"
#include "sim/run/permille.h"

namespace ferry::cli {

namespace {

std::string thousandths(std::int64_t of) { return fmt::format("{}.{:03}", of / 1000, of % 1000); }

// How much longer a step takes than the bound, in thousandths of it, rounded up.
std::int64_t gap_permille(sim::Time step_ns, sim::Time bound_ns) {
  return bound_ns <= 0 ? 0 : sim::permille(step_ns - bound_ns, bound_ns, sim::Round::kUp);
}

std::optional<sim::Time> bound_of(const plan::PlanResult& result) {
  return result.certificate ? result.certificate->step_ns : std::nullopt;
}

// The fastest row that fits and that the core carries out: the bound is of such.
const plan::PolicyRow* fastest_answer(const plan::PlanResult& result) {
  const plan::PolicyRow* best = nullptr;
  for (const plan::PolicyRow& row : result.rows) {
    if (!row.is_answer() || !row.has_plan()) continue;
    if (!best || row.simulation.step_ns < best->simulation.step_ns) best = &row;
  }
  return best;
}

}  // namespace

std::string certificate_text(const plan::PlanResult& result) {
  std::string text;
  for (const plan::PolicyRow& row : result.rows) {
    if (!row.has_plan()) text += fmt::format("no bound for: {} (another scheduler)\n", row.policy);
  }
  if (!result.certificate) {
    return result.stopped ? text : text + "no bound for: a step that fails\n";
  }
  if (!result.certificate->step_ns) {
    return text + fmt::format("no plan fits: each needs at least {}\n",
                              format_bytes(result.certificate->least_bytes));
  }
  const sim::Time bound = *result.certificate->step_ns;
  const std::string below =
      "no plan is below " +
      thousandths(sim::permille(bound, std::max<sim::Time>(result.keep_ns, 1), sim::Round::kDown));
  const plan::PolicyRow* best = fastest_answer(result);
  if (best) {
    const std::int64_t gap = gap_permille(best->simulation.step_ns, bound);
    text +=
        fmt::format("{}: {} of keep; {}: gap {}.{} %", best->policy,
                    thousandths(plan::slowdown_permille(best->simulation.step_ns, result.keep_ns)),
                    below, gap / 10, gap % 10);
  } else {
    text += below + " of keep";
  }
  const std::string& why = result.certificate->outside_proof;
  return text + (why.empty() ? "" : " (memory left out: " + why + ")") + "\n";
}

void add_certificate(nlohmann::ordered_json& json, const plan::PlanResult& result) {
  json["lower_bound_ns"] = nullptr;
  json["least_bytes"] = nullptr;
  if (!result.certificate) return;
  json["least_bytes"] = result.certificate->least_bytes;
  if (const auto bound = bound_of(result)) json["lower_bound_ns"] = *bound;
}

std::optional<std::int64_t> gap_permille(const plan::PlanResult& result,
                                         const plan::PolicyRow& row) {
  const auto bound = bound_of(result);
  if (!bound || !row.is_answer() || !row.has_plan()) return std::nullopt;
  return gap_permille(row.simulation.step_ns, *bound);
}

void add_gap(nlohmann::ordered_json& entry, const plan::PlanResult& result,
             const plan::PolicyRow& row) {
  entry["lower_bound_ns"] = nullptr;
  entry["gap"] = nullptr;
  const auto gap = gap_permille(result, row);
  if (!gap) return;
  entry["lower_bound_ns"] = *bound_of(result);
  entry["gap"] = static_cast<double>(*gap) / 1000;
}

}  // namespace ferry::cli
