#include "cli/nothing_fits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/console/choices.h"
#include "plan/sliced_loss.h"
#include "plan/ways.h"
#include "scenarios/hardware.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

using plan::Way;
using plan::WayKind;
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

// Returns the option that the user types, or the change that the user makes.
std::string words(const Way& way, const Program& program) {
  switch (way.kind) {
    case WayKind::kPolicy:
      return fmt::format("--policy {}", name(way.policy));
    case WayKind::kFused:
      return "--optimizer-implementation fused";
    case WayKind::kSlicedLoss: {
      const plan::Loss loss = plan::loss_of(program).value();
      return fmt::format("the loss in {} slices (yours is {} x {} at once)", plan::kLossSlices,
                         loss.rows, loss.classes);
    }
    case WayKind::kExpandable:
      return "--alloc-conf expandable_segments:True";
    case WayKind::kNoState:
      return "another training: --optimizer sgd, which has no state";
  }
  return "";
}

std::string line(const std::string& what, const Way& way) {
  return fmt::format("\n  {}: needs {}{}", what, format_bytes(way.least_bytes),
                     way.fits ? ", and fits" : "");
}

// Returns up to three shipped cards on which the training fits, those with the least memory first.
std::vector<std::string> cards_that_fit(const PolicyRequest& request, std::int64_t least_bytes) {
  constexpr std::size_t kMost = 3;
  std::vector<Hardware> cards = list_hardware([](const InputError&) {});
  std::erase_if(cards, [&](const Hardware& card) { return card.usable_bytes() < least_bytes; });
  std::stable_sort(cards.begin(), cards.end(), [](const Hardware& a, const Hardware& b) {
    return a.usable_bytes() < b.usable_bytes();
  });
  std::vector<std::string> fit;
  for (const Hardware& card : cards) {
    if (fit.size() == kMost) break;
    if (plan::fits_on(card, request.program, request.plan)) fit.push_back(card.name);
  }
  return fit;
}

std::string helps(const PolicyRequest& request, const plan::PolicyRow& least) {
  const plan::Ways ways =
      plan::ways_to_fit(request.program, request.hardware, request.plan, least.least_bytes);
  std::string text;
  for (const Way& way : ways.each) {
    text += line((text.empty() ? "" : "and ") + words(way, request.program), way);
  }
  if (ways.no_state) text += line(words(*ways.no_state, request.program), *ways.no_state);
  const bool has_whole_card = request.plan.budget_bytes >= request.hardware.usable_bytes();
  const std::vector<std::string> cards =
      has_whole_card ? cards_that_fit(request, least.least_bytes) : std::vector<std::string>();
  if (!cards.empty()) text += fmt::format("\n  another card, {}: fits", listed(cards));
  return (text.empty() ? "" : "\nWhat would help, each planned:" + text) +
         "\nFor the largest batch that fits call torch_ferry.plan in Python.";
}

// No policy can make these smaller.
std::int64_t parameters_and_state(const KindBytes& kinds) {
  return kinds[MemoryKind::kParameter] + kinds[MemoryKind::kOptimizer];
}

}  // namespace

std::string nothing_fits(const PolicyRequest& request, const plan::PlanResult& result) {
  const plan::PolicyRow* least = least_row(request, result);
  if (!least) return "";
  const KindBytes& kinds = least->simulation.peak_kinds;
  const std::int64_t budget = request.plan.budget_bytes;
  std::string text = fmt::format("Nothing fits in {}. {} needs the least, {}", format_bytes(budget),
                                 least->policy, format_bytes(least->least_bytes));
  if (least->least_bytes > budget) {
    text += fmt::format(" ({} more)", format_bytes(least->least_bytes - budget));
  }
  text += fmt::format(": {}.", made_of(kinds));
  if (!least->refusal.empty() && least->least_bytes <= budget) text += " " + least->refusal + ".";
  if (parameters_and_state(kinds) > budget) {
    text += fmt::format(
        " Parameters and the optimizer's state alone take {}: fewer activations cannot help, but "
        "training fewer parameters (LoRA) would.",
        format_bytes(parameters_and_state(kinds)));
  }
  return text + helps(request, *least);
}

}  // namespace ferry::cli
