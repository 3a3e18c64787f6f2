#include "verify/schedulers/registry.h"

#include <algorithm>
#include <vector>

#include "verify/schedulers/entries.h"

namespace ferry::verify::schedulers {

std::span<const SchedulerEntry> schedulers() {
  static const std::vector<SchedulerEntry> all = [] {
    std::vector<SchedulerEntry> entries;
    for (const auto part : {torchtune_and_trl_entries(), other_entries()}) {
      entries.insert(entries.end(), part.begin(), part.end());
    }
    return entries;
  }();
  return all;
}

const SchedulerEntry* find_scheduler(std::string_view name) {
  const auto all = schedulers();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const SchedulerEntry& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

HuntedScheduler hunted(const SchedulerEntry& entry) {
  HuntedScheduler scheduler;
  scheduler.name = entry.name;
  scheduler.make = [make = entry.make](const sim::SimDevice& device,
                                       const sim::SimAutograd& autograd,
                                       const auto&) { return make(device, autograd); };
  scheduler.limit = entry.limit;
  scheduler.without = {Feature::kPlans};  // only Ferry has plans
  scheduler.program = entry.program;
  scheduler.moves_all = entry.moves_all;
  return scheduler;
}

const HuntedScheduler* find_hunted(std::string_view name) {
  static const std::vector<HuntedScheduler> all = [] {
    std::vector<HuntedScheduler> made;
    for (const SchedulerEntry& entry : schedulers()) made.push_back(hunted(entry));
    return made;
  }();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const HuntedScheduler& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace ferry::verify::schedulers
