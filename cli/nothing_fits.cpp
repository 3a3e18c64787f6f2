#include "cli/nothing_fits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/what_helps.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

using sim::KindBytes;
using sim::MemoryKind;

// Returns "15.0 GiB of parameters, …", largest first. Parts below 1 % of the sum are left out.
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
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i].second;
  }
  return text;
}

// Returns the row that needs the least device memory. Rows that pin more memory than the host has
// come after all others.
const plan::PolicyRow* least_row(const PolicyRequest& request, const plan::PlanResult& result) {
  const auto key = [&](const plan::PolicyRow& row) {
    const bool pins = row.simulation.host_peak_bytes > request.hardware.host_memory_bytes;
    return std::pair(pins, row.least_bytes);
  };
  const plan::PolicyRow* least = nullptr;
  for (const plan::PolicyRow& row : result.rows) {
    if (row.least_bytes == 0 || row.useless || !row.is_safe()) continue;
    if (!least || key(row) < key(*least)) least = &row;
  }
  return least;
}

}  // namespace

std::string nothing_fits(const PolicyArguments& arguments, const PolicyRequest& request,
                         const plan::PlanResult& result) {
  const plan::PolicyRow* least = least_row(request, result);
  if (!least) return "";
  const KindBytes& kinds = least->simulation.peak_kinds;
  const std::int64_t budget = request.plan.budget_bytes;
  // Each policy is searched for the budget, so another budget may find a plan that needs less.
  std::string text =
      fmt::format("Nothing fits in {}. {} needs the least of these, {}", format_bytes(budget),
                  least->policy, format_bytes(least->least_bytes));
  if (least->least_bytes > budget) {
    text += fmt::format(" ({} more)", format_bytes(least->least_bytes - budget));
  }
  text += fmt::format(": {}.", made_of(kinds));
  if (!least->refusal.empty() && least->least_bytes <= budget) text += " " + least->refusal + ".";
  if (parameters_and_state(kinds) > budget) {
    text += fmt::format(
        " Parameters and the optimizer's state alone take {}: fewer activations cannot help, but "
        "the state on the host, or training fewer parameters (LoRA), would.",
        format_bytes(parameters_and_state(kinds)));
  }
  if (least->policy == name(Policy::kBest)) text += " --pareto searches for less.";
  const std::string helps = helps_to_fit(arguments, request, *least);
  if (!helps.empty()) text += "\nWhat would help, each planned:" + helps;
  return text + "\nFor the largest batch that fits call torch_ferry.plan in Python.";
}

}  // namespace ferry::cli
