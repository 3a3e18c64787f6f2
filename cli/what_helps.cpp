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
    case WayKind::kHostState:
      return "the optimizer's state on the host (--optimizer-state host; ferry.optimizer in "
             "Python)";
    case WayKind::kInBackward:
      return "the optimizer's state on the host, updated in backward (--optimizer-state "
             "in-backward)";
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

// Returns the shipped cards with at least so much memory for tensors, those with the least first.
std::vector<Hardware> larger_cards(std::int64_t least_bytes) {
  std::vector<Hardware> cards = list_hardware([](const InputError&) {});
  std::erase_if(cards, [&](const Hardware& card) { return card.usable_bytes() < least_bytes; });
  std::stable_sort(cards.begin(), cards.end(), [](const Hardware& a, const Hardware& b) {
    return a.usable_bytes() < b.usable_bytes();
  });
  return cards;
}

constexpr std::size_t kCardsMost = 3;

// Names cards on which the training fits.
std::string cards_that_fit(const PolicyRequest& request, std::int64_t least_bytes) {
  std::vector<std::string> names;
  for (const Hardware& card : larger_cards(least_bytes)) {
    if (names.size() == kCardsMost) break;
    if (plan::fits_on(card, request.program, request.plan)) names.push_back(card.name);
  }
  return names.empty() ? "" : fmt::format("\n  another card, {}: fits", listed(names));
}

// Names cards on which the training fits as it is and takes less than `step_ns`.
std::string faster_cards(const PolicyRequest& request, sim::Time step_ns) {
  std::string text;
  std::size_t named = 0;
  for (const Hardware& card : larger_cards(request.plan.budget_bytes)) {
    if (named == kCardsMost) break;
    const auto took = plan::keeps_on(card, request.program, request.plan);
    if (!took || *took >= step_ns) continue;
    text += fmt::format("\n  another card, {}: keep takes {} a step, and fits", card.name,
                        format_time(*took));
    ++named;
  }
  return text;
}

bool has_whole_card(const PolicyRequest& request) {
  return request.plan.budget_bytes >= request.hardware.usable_bytes();
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

std::int64_t parameters_and_state(const sim::KindBytes& kinds) {
  return kinds[sim::MemoryKind::kParameter] + kinds[sim::MemoryKind::kOptimizer];
}

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
  return has_whole_card(request) ? text + cards_that_fit(request, least.least_bytes) : text;
}

std::string helps_to_speed(const PolicyRequest& request, const plan::PlanResult& result,
                           const plan::PolicyRow& best) {
  std::string text;
  for (const Way& way : plan::ways_to_speed(request.program, request.hardware, request.plan,
                                            best.simulation.step_ns)) {
    text += fmt::format("\n  {}: {} takes {} a step, and fits", words(way, request.program),
                        name(way.policy), format_time(way.step_ns));
  }
  const bool any = has_whole_card(request) && result.keep_judged_bytes != kUnlimited;
  return any ? text + faster_cards(request, best.simulation.step_ns) : text;
}

}  // namespace ferry::cli
