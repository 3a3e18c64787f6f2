#include "formats/plan_options.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

namespace ferry {
namespace {

struct PlanOption {
  const char* name;
  std::int64_t (*get)(const CoreOptions&);
  void (*set)(CoreOptions&, std::int64_t);
};

template <auto Field>
constexpr PlanOption number(const char* name) {
  return {name, [](const CoreOptions& options) { return options.*Field; },
          [](CoreOptions& options, std::int64_t value) { options.*Field = value; }};
}
template <auto Field, class Enum, std::int64_t Last>
constexpr PlanOption choice(const char* name) {
  return {name,
          [](const CoreOptions& options) { return static_cast<std::int64_t>(options.*Field); },
          [](CoreOptions& options, std::int64_t value) {
            if (value < 0 || value > Last) throw std::invalid_argument("out of range");
            options.*Field = static_cast<Enum>(value);
          }};
}

constexpr std::array<PlanOption, 9> kPlanOptions = {
    choice<&CoreOptions::host_memory, HostMemory, 1>("host_memory"),
    choice<&CoreOptions::copy_streams, CopyStreams, 2>("copy_streams"),
    choice<&CoreOptions::reload_pool, ReloadPool, 1>("reload_pool"),
    number<&CoreOptions::min_bytes>("bytes_min"),
    number<&CoreOptions::window_tensors>("window_packs"),
    number<&CoreOptions::window_bytes>("window_bytes"),
    number<&CoreOptions::prefetch_bytes>("prefetch_bytes"),
    number<&CoreOptions::prefetch_tensors>("prefetch_packs"),
    number<&CoreOptions::hold_bytes>("hold_bytes"),
};

}  // namespace

NamedOptions plan_options(const CoreOptions& options) {
  NamedOptions named;
  for (const PlanOption& option : kPlanOptions) {
    named.emplace_back(option.name, option.get(options));
  }
  return named;
}

CoreOptions named_options(const NamedOptions& named) {
  CoreOptions options;
  for (const auto& [name, value] : named) {
    const auto option =
        std::find_if(kPlanOptions.begin(), kPlanOptions.end(),
                     [&, &key = name](const PlanOption& each) { return key == each.name; });
    if (option == kPlanOptions.end()) {
      throw std::invalid_argument("no option of the offloader is called '" + name + "'");
    }
    try {
      option->set(options, value);
    } catch (const std::invalid_argument&) {
      throw std::invalid_argument("option '" + name + "' cannot be " + std::to_string(value));
    }
  }
  check_options(options);
  return options;
}

CoreOptions planned_options(const Plan& plan) {
  CoreOptions options = named_options(plan.options);
  std::map<std::optional<std::uint64_t>, std::uint64_t> packs;  // counts so far, by frame
  for (const PlanEntry& entry : plan.entries) {
    const std::uint64_t next = packs[entry.segment]++;
    if (entry.pack != next) {
      throw std::invalid_argument("entry " + std::to_string(&entry - plan.entries.data()) +
                                  " of the plan is for pack " + std::to_string(entry.pack) +
                                  " instead of " + std::to_string(next));
    }
    const bool moves = entry.decision == PlanChoice::kOffload;
    if (!entry.segment || moves) options.offload.push_back(moves);
  }
  options.offload.push_back(false);
  return options;
}

std::optional<CoreOptions> to_options(const Plan& plan) {
  CoreOptions options = planned_options(plan);
  const auto& moves = options.offload;
  if (std::find(moves.begin(), moves.end(), true) == moves.end()) return std::nullopt;
  return options;
}

SavedChoice saved_choice(PlanChoice choice) {
  switch (choice) {
    case PlanChoice::kKeep:
      return SavedChoice::kKeep;
    case PlanChoice::kOffload:
      return SavedChoice::kOffload;
    case PlanChoice::kRecompute:
      break;
  }
  return SavedChoice::kRecompute;
}

std::shared_ptr<const SegmentPlan> planned_segments(const Plan& plan) {
  const auto segments = std::make_shared<SegmentPlan>(SegmentPlan::closed());
  for (const PlanSegment& segment : plan.segments) {
    segments->segments.push_back(SegmentPlan::closed(segment.recompute));
  }
  for (const PlanEntry& entry : plan.entries) {
    if (!entry.segment) continue;
    SegmentPlan& segment = segments->segments.at(*entry.segment);
    segment.choices.push_back(saved_choice(entry.decision));
    segment.packs = segment.choices.size();
  }
  return segments;
}

}  // namespace ferry
