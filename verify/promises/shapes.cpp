#include "verify/promises/shapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/checkpoint/sequential.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/scheduled_pipeline.h"
#include "shared/pipeline/stage.h"
#include "shared/skip/layout.h"
#include "sim/gpu/workers.h"
#include "verify/promises/by_hand.h"

namespace ferry::verify {
namespace {

// A chain of functions is cut into so many segments, each but the last as long as the others can
// be, and the last has no checkpoint; other numbers are refused.
std::string wrong_chain(std::int64_t length, std::int64_t segments, Rules rules) {
  const std::string chain = std::to_string(length) + " functions in " + std::to_string(segments);
  std::vector<SequentialSegment> cut;
  try {
    cut = sequential_segments(length, segments, rules);
  } catch (const std::invalid_argument& error) {
    if (segments >= 1 && segments <= length) return chain + ": " + error.what();
    const std::string must = "should be from 1 to the number of functions, " +
                             std::to_string(length) + ", but is " + std::to_string(segments);
    return std::string(error.what()).find(must) != std::string::npos
               ? ""
               : chain + " are refused in other words: " + error.what();
  }
  if (segments < 1 || segments > length) return chain + " are not refused";
  std::int64_t next = 0;
  for (const SequentialSegment& each : cut) {
    const bool last = &each == &cut.back();
    const bool long_enough = last || (each.end - each.begin) == length / segments;
    if (each.begin != next || !long_enough || each.checkpoint == last) return chain;
    next = each.end;
  }
  const bool all = next == length && cut.size() == static_cast<std::size_t>(segments);
  return all ? "" : chain;
}

std::optional<Verdict> judge_chains(choices::Draws& draws, Rules rules) {
  const std::int64_t length = draws.in(0, 7);
  for (std::int64_t segments = 0; segments < length + 2; ++segments) {
    const std::string wrong = wrong_chain(length, segments, rules);
    if (!wrong.empty()) return Verdict{Oracle::kCut, "a chain of " + wrong};
  }
  return std::nullopt;
}

// Every micro-batch is at every stage once, at the clock that is the sum of their numbers.
std::optional<Verdict> judge_clocks() {
  constexpr std::size_t kMost = 4;
  for (std::size_t code = 0; code < kMost * kMost; ++code) {
    const std::size_t m = code / kMost, n = code % kMost;
    std::size_t pairs = 0, clock = 0;
    bool right = true;
    for (const auto& cycle : clock_cycles(m, n)) {
      for (const auto& [i, j] : cycle) right = right && i < m && j < n && i + j == clock;
      pairs += cycle.size();
      right = right && !cycle.empty();
      ++clock;
    }
    right = right && pairs == m * n;
    right = right && checkpoint_stop(CheckpointMode::kAlways, m) == m &&
            checkpoint_stop(CheckpointMode::kNever, m) == 0 &&
            checkpoint_stop(CheckpointMode::kExceptLast, m) == (m == 0 ? 0 : m - 1);
    if (right) continue;
    return Verdict{Oracle::kSchedule, "the clocks of " + std::to_string(m) + " micro-batches in " +
                                          std::to_string(n) +
                                          " stages, or what of them runs again"};
  }
  return std::nullopt;
}

std::optional<Verdict> judge_names() {
  const std::vector<std::pair<std::string_view, std::string_view>> names = {
      {name(ScheduleKind::kGpipe), "gpipe"},
      {name(ScheduleKind::kOneForwardOneBackward), "1f1b"},
      {name(ScheduleKind::kInterleaved), "interleaved"},
      {name(CheckpointMode::kAlways), "always"},
      {name(CheckpointMode::kExceptLast), "except_last"},
      {name(CheckpointMode::kNever), "never"}};
  for (const auto& [is, must] : names) {
    if (is != must) {
      return Verdict{Oracle::kError,
                     "the name of '" + std::string(must) + "' is '" + std::string(is) + "'"};
    }
  }
  return std::nullopt;
}

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
std::optional<Verdict> judge_order(const Schedule& schedule) {
  std::vector<PlacedAction> order;
  try {
    order = in_order(schedule);
  } catch (const std::invalid_argument& error) {
    if (!has_order(schedule)) return std::nullopt;
    return Verdict{Oracle::kSchedule, std::string("a schedule has an order: ") + error.what()};
  }
  if (!has_order(schedule)) return Verdict{Oracle::kSchedule, "a schedule without order is taken"};
  std::vector<PipelineAction> came;
  std::vector<std::vector<PipelineAction>> devices(schedule.devices.size());
  bool right = true;
  for (const auto& [device, action] : order) {
    right = right && may_come(action, schedule.stages, came);
    came.push_back(action);
    devices[device].push_back(action);
  }
  if (right && devices == schedule.devices) return std::nullopt;
  return Verdict{Oracle::kSchedule, "an order takes an action before what it needs"};
}

// Of a schedule as it is made, and of one in which two of a device's actions changed places.
std::optional<Verdict> judge_orders(choices::Draws& draws) {
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

// A pipeline that goes backward itself has as many stages on each of its devices.
std::optional<Verdict> judge_devices(choices::Draws& draws) {
  const auto devices = static_cast<std::size_t>(draws.in(0, 4));
  const auto stages = static_cast<std::size_t>(draws.in(0, 5));
  ByHand hand;
  std::string said;
  try {
    const ScheduledPipeline pipeline(std::vector<sim::SimDevice>(devices, hand.device()),
                                     hand.autograd(), sim::SimWorkers(hand.machine()),
                                     std::vector<PipelineStage<sim::SimAutograd>::Function>(stages),
                                     SkipLayout(), ScheduleKind::kInterleaved,
                                     CorePipelineOptions());
  } catch (const std::invalid_argument& error) {
    said = error.what();
  }
  const bool fits = devices > 0 && stages > 0 && stages % devices == 0;
  if (said == (fits ? "" : "expected the same number of stages on each device")) {
    return std::nullopt;
  }
  return Verdict{Oracle::kError, "of " + std::to_string(stages) + " stages on " +
                                     std::to_string(devices) + " devices it says: " + said};
}

}  // namespace

std::optional<Verdict> judge_shapes(choices::Draws& draws, Rules rules) {
  if (auto wrong = judge_chains(draws, rules)) return wrong;
  if (auto wrong = judge_clocks()) return wrong;
  if (auto wrong = judge_names()) return wrong;
  if (auto wrong = judge_devices(draws)) return wrong;
  return judge_orders(draws);
}

}  // namespace ferry::verify
