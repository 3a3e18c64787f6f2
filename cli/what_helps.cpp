#include "cli/what_helps.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cli/console/choices.h"
#include "cli/other_models.h"
#include "plan/sliced_loss.h"
#include "plan/ways.h"
#include "scenarios/hardware.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

using plan::Way;
using plan::WayKind;

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

using OnCard = bool (*)(const Hardware&, const Program&, const plan::PlanRequest&);

// Returns up to three shipped cards on which the training fits, those with the least memory first.
std::vector<std::string> cards_where(OnCard fits, const PolicyRequest& request,
                                     std::int64_t least_bytes) {
  constexpr std::size_t kMost = 3;
  std::vector<Hardware> cards = list_hardware([](const InputError&) {});
  std::erase_if(cards, [&](const Hardware& card) { return card.usable_bytes() < least_bytes; });
  std::stable_sort(cards.begin(), cards.end(), [](const Hardware& a, const Hardware& b) {
    return a.usable_bytes() < b.usable_bytes();
  });
  std::vector<std::string> fit;
  for (const Hardware& card : cards) {
    if (fit.size() == kMost) break;
    if (fits(card, request.program, request.plan)) fit.push_back(card.name);
  }
  return fit;
}

bool has_whole_card(const PolicyRequest& request) {
  return request.plan.budget_bytes >= request.hardware.usable_bytes();
}

// The memory that no policy can make smaller.
std::int64_t parameters_and_state(const sim::KindBytes& kinds) {
  return kinds[sim::MemoryKind::kParameter] + kinds[sim::MemoryKind::kOptimizer];
}

// Returns the changes that help a training which needs `least_bytes` with its best policy.
std::string on_top(const PolicyRequest& request, std::int64_t least_bytes) {
  std::string text;
  for (const Way& way :
       plan::ways_to_fit(request.program, request.hardware, request.plan, least_bytes).each) {
    text += line("and " + words(way, request.program), way);
  }
  return text;
}

std::string other_models(const PolicyArguments& arguments, const PolicyRequest& request,
                         const plan::PolicyRow& least) {
  const bool smaller_helps =
      parameters_and_state(least.simulation.peak_kinds) < request.plan.budget_bytes;
  std::string text;
  for (const OtherModel& other : models_that_fit(arguments, request, smaller_helps)) {
    text += line(other.words, other.way);
    if (!other.way.fits) text += on_top(other.request, other.way.least_bytes);
  }
  return text;
}

}  // namespace

std::string helps_to_fit(const PolicyArguments& arguments, const PolicyRequest& request,
                         const plan::PolicyRow& least) {
  const plan::Ways ways =
      plan::ways_to_fit(request.program, request.hardware, request.plan, least.least_bytes);
  std::string text;
  for (const Way& way : ways.each) {
    text += line((text.empty() ? "" : "and ") + words(way, request.program), way);
  }
  if (ways.no_state) text += line(words(*ways.no_state, request.program), *ways.no_state);
  text += other_models(arguments, request, least);
  if (!has_whole_card(request)) return text;
  const std::vector<std::string> cards = cards_where(plan::fits_on, request, least.least_bytes);
  if (!cards.empty()) text += fmt::format("\n  another card, {}: fits", listed(cards));
  return text;
}

std::string helps_to_speed(const PolicyRequest& request, const plan::PlanResult& result,
                           const plan::PolicyRow& best) {
  std::string text;
  for (const Way& way : plan::ways_to_speed(request.program, request.hardware, request.plan,
                                            best.simulation.step_ns)) {
    text += fmt::format("\n  {}: {} takes {} a step, and fits", words(way, request.program),
                        name(way.policy), format_time(way.step_ns));
  }
  if (!has_whole_card(request) || result.keep_judged_bytes == kUnlimited) return text;
  const std::vector<std::string> cards =
      cards_where(plan::keeps_on, request, request.plan.budget_bytes);
  if (!cards.empty()) text += fmt::format("\n  another card, {}: keep fits", listed(cards));
  return text;
}

}  // namespace ferry::cli
