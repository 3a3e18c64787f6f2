// The order of a schedule's actions, drawn: of a schedule as it is made, and of one in which two of
// a device's actions changed places, which may have none.
#include "shared/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/choices/draws.h"
#include "tests/support/objection.h"

namespace ferry::test {
namespace {

// Whether the action can come after those that came.
bool may_come(const PipelineAction& action, std::size_t stages,
              const std::vector<PipelineAction>& came) {
  const auto has_come = [&](bool forward, std::size_t stage) {
    return std::find(came.begin(), came.end(), PipelineAction{forward, stage, action.microbatch}) !=
           came.end();
  };
  if (action.forward) return action.stage == 0 || has_come(true, action.stage - 1);
  return has_come(true, action.stage) &&
         (action.stage + 1 == stages || has_come(false, action.stage + 1));
}

// Whether there is an order: any device that can go on may, for it takes nothing from another one.
bool has_order(const Schedule& schedule) {
  std::vector<PipelineAction> came;
  std::vector<std::size_t> at(schedule.devices.size());
  std::size_t all = 0;
  for (const auto& actions : schedule.devices) all += actions.size();
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const auto& actions = schedule.devices[d];
      if (at[d] == actions.size() || !may_come(actions[at[d]], schedule.stages, came)) continue;
      came.push_back(actions[at[d]++]);
      goes_on = true;
    }
  }
  return came.size() == all;
}

// Each action comes once, after what it needs, and a device's in its own order. A schedule without
// an order is refused.
Objection judge_order(const Schedule& schedule) {
  std::vector<PlacedAction> order;
  try {
    order = in_order(schedule);
  } catch (const std::invalid_argument& error) {
    if (!has_order(schedule)) return std::nullopt;
    return std::string("a schedule has an order: ") + error.what();
  }
  if (!has_order(schedule)) return "a schedule without order is taken";
  std::vector<PipelineAction> came;
  std::vector<std::vector<PipelineAction>> devices(schedule.devices.size());
  bool right = true;
  for (const auto& [device, action] : order) {
    right = right && may_come(action, schedule.stages, came);
    came.push_back(action);
    devices[device].push_back(action);
  }
  if (right && devices == schedule.devices) return std::nullopt;
  return "an order takes an action before what it needs";
}

Objection judge_orders(std::uint64_t seed) {
  choices::Draws draws(seed);
  const auto kind = static_cast<ScheduleKind>(draws.in(0, 3));
  const auto devices = static_cast<std::size_t>(draws.in(1, 4));
  const bool interleaved = kind == ScheduleKind::kInterleaved;
  const auto each = static_cast<std::size_t>(interleaved ? draws.in(1, 3) : 1);
  const auto microbatches = static_cast<std::size_t>(draws.in(1, 3)) * (interleaved ? devices : 1);
  Schedule schedule = make_schedule(kind, devices, each, microbatches);
  if (auto wrong = judge_order(schedule)) return wrong;
  auto& actions =
      schedule.devices[static_cast<std::size_t>(draws.in(0, static_cast<int>(devices)))];
  const auto any = [&] {
    return static_cast<std::size_t>(draws.in(0, static_cast<int>(actions.size())));
  };
  const std::size_t one = any(), other = any();
  std::swap(actions[one], actions[other]);
  return judge_order(schedule);
}

TEST(ScheduleDrawn, EachActionComesOnceAndAfterWhatItNeeds) {
  EXPECT_EQ(first_objection(judge_orders), "");
}

}  // namespace
}  // namespace ferry::test
