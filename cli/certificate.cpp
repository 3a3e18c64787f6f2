#include "cli/certificate.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/answer.h"
#include "scenarios/units.h"
#include "sim/run/training/permille.h"

namespace ferry::cli {

namespace {

// Returns how much longer a step takes than the bound, in thousandths of the bound, rounded up.
std::int64_t permille_above(sim::Time step_ns, sim::Time bound_ns) {
  return bound_ns <= 0 ? 0 : sim::permille(step_ns - bound_ns, bound_ns, sim::Round::kUp);
}

std::optional<sim::Time> bound_of(const plan::PlanResult& result) {
  return result.certificate ? result.certificate->step_ns : std::nullopt;
}

// Returns the fastest row that fits and that Ferry's core runs: the bound holds for such rows only.
// With `expandable`, the row under expandable segments counts too.
const plan::PolicyRow* fastest_answer(const plan::PlanResult& result, bool expandable) {
  const plan::PolicyRow* best = nullptr;
  for (const plan::PolicyRow& row : result.rows) {
    if (!row.is_answer() || !row.has_plan()) continue;
    if (!expandable && row.policy == plan::kBestExpandable) continue;
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
    return text + fmt::format("no plan fits: none runs in less than {}\n",
                              format_bytes(result.certificate->least_bytes));
  }
  const sim::Time bound = *result.certificate->step_ns;
  const std::string below =
      "no plan is below " +
      thousandths(sim::permille(bound, std::max<sim::Time>(result.keep_ns, 1), sim::Round::kDown));
  const std::string& why = result.certificate->outside_proof;
  const std::string end = (why.empty() ? "" : " (memory left out: " + why + ")") + "\n";
  const plan::PolicyRow* const usual = fastest_answer(result, false);
  const plan::PolicyRow* const best = fastest_answer(result, true);
  if (!best) return text + below + " of keep" + end;
  const auto line = [&](const plan::PolicyRow& row) {
    const std::int64_t gap = permille_above(row.simulation.step_ns, bound);
    const auto slowdown = plan::slowdown_permille(row.simulation.step_ns, result.keep_ns);
    return fmt::format("{}: {} of keep; {}: gap {}.{} %", row.policy, thousandths(slowdown), below,
                       gap / 10, gap % 10) +
           end;
  };
  if (usual && usual != best) text += line(*usual);
  return text + line(*best);
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
  return permille_above(row.simulation.step_ns, *bound);
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
