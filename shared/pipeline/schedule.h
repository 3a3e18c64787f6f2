// Schedules: for each device a list of actions, each a stage and a micro-batch, forward or
// backward.
//
//   GPipe        all forwards, then all backwards.
//   1F1B         only as many forwards first as keep the last device busy, then one backward and
//                one forward in alternation.
//   interleaved  1F1B with several stages on a device (device d has d, d + n, d + 2n, …), so that
//                the pipeline fills in smaller steps.
//
// Let there be n devices, v stages on each, m micro-batches, and stages that take equally long. The
// bubble is the fraction of a step in which a device is idle. Alive are the micro-batches that a
// device holds at once.
//
//                bubble                  alive on device d
//   GPipe        (n-1) / (m + n-1)       m
//   1F1B         (n-1) / (m + n-1)       min(m, n - d)
//   interleaved  (n-1) / (v m + n-1)     min(v m, 2 (n - d - 1) + (v-1) n + 1)
//
// Sources: Huang et al., GPipe; Narayanan et al., PipeDream-2BW and Megatron-LM (2021). The
// interleaved schedule has the warm-up order of the latter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/seam/invariant.h"

namespace ferry {

enum class ScheduleKind : std::uint8_t { kGpipe, kOneForwardOneBackward, kInterleaved };
inline constexpr std::string_view kScheduleNames[] = {"gpipe", "1f1b", "interleaved"};
constexpr std::string_view name(ScheduleKind kind) {
  return kScheduleNames[static_cast<std::size_t>(kind)];
}

struct PipelineAction {
  bool forward = true;
  std::size_t stage = 0;
  std::size_t microbatch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// The actions of each device, in order. Stage s runs on device s % n.
struct Schedule {
  std::size_t stages = 0;
  std::size_t microbatches = 0;
  std::vector<std::vector<PipelineAction>> devices;
};

// The forward of GPipe by clock, as (micro-batch, stage) pairs. At clock k, micro-batch k - j is at
// stage j. Each pair (i, j) occurs once, at clock i + j.
inline std::vector<std::vector<std::pair<std::size_t, std::size_t>>> clock_cycles(
    std::size_t microbatches, std::size_t stages) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> clocks;
  if (microbatches == 0 || stages == 0) return clocks;
  for (std::size_t clock = 0; clock + 1 < microbatches + stages; ++clock) {
    clocks.emplace_back();
    const std::size_t first = clock < microbatches ? 0 : clock + 1 - microbatches;
    for (std::size_t stage = first; stage < std::min(clock + 1, stages); ++stage) {
      clocks.back().emplace_back(clock - stage, stage);
    }
  }
  return clocks;
}

namespace schedule_detail {

// Returns the k-th forward, or backward, of a device. Its stages alternate, n micro-batches each.
inline PipelineAction nth(std::size_t k, bool forward, std::size_t device, std::size_t n,
                          std::size_t v) {
  const std::size_t round = k / (n * v);
  const std::size_t turn = k % (n * v) / n;
  const std::size_t chunk = forward ? turn : v - 1 - turn;
  return {forward, chunk * n + device, round * n + k % n};
}

}  // namespace schedule_detail

// Throws std::invalid_argument if a count is zero, if GPipe or 1F1B gets several stages on a
// device, or if the number of micro-batches for the interleaved schedule is not a multiple of the
// number of devices.
inline void check_schedule(ScheduleKind kind, std::size_t devices, std::size_t stages_each,
                           std::size_t microbatches) {
  const auto refuse = [kind](const std::string& text) {
    throw std::invalid_argument(std::string(name(kind)) + ": " + text);
  };
  if (devices == 0 || stages_each == 0 || microbatches == 0) {
    refuse("expected at least one device, one stage and one micro-batch");
  }
  const bool interleaved = kind == ScheduleKind::kInterleaved;
  if (!interleaved && stages_each > 1) refuse("expected one stage on each device");
  if (interleaved && microbatches % devices != 0) {
    refuse("expected micro-batches that divide by the devices, found " +
           std::to_string(microbatches) + " for " + std::to_string(devices));
  }
}

// Throws what check_schedule throws.
inline Schedule make_schedule(ScheduleKind kind, std::size_t devices, std::size_t stages_each,
                              std::size_t microbatches) {
  check_schedule(kind, devices, stages_each, microbatches);
  const bool interleaved = kind == ScheduleKind::kInterleaved;
  Schedule schedule{devices * stages_each, microbatches, {}};
  const std::size_t all = microbatches * stages_each;
  for (std::size_t device = 0; device < devices; ++device) {
    const std::size_t behind = devices - device - 1;
    std::size_t ahead = all;
    if (kind == ScheduleKind::kOneForwardOneBackward) ahead = std::min(all, behind);
    if (interleaved) ahead = std::min(all, 2 * behind + (stages_each - 1) * devices);
    std::vector<PipelineAction>& actions = schedule.devices.emplace_back();
    const auto add = [&](std::size_t k, bool forward) {
      // with one stage on each device the group size does not matter
      actions.push_back(interleaved ? schedule_detail::nth(k, forward, device, devices, stages_each)
                                    : PipelineAction{forward, device, k});
    };
    for (std::size_t k = 0; k < ahead; ++k) add(k, true);
    for (std::size_t k = ahead; k < all; ++k) {
      add(k, true);
      add(k - ahead, false);
    }
    for (std::size_t k = all - ahead; k < all; ++k) add(k, false);
  }
  return schedule;
}

// Returns the most micro-batches that a device holds at once.
inline std::size_t alive_max(const std::vector<PipelineAction>& actions) {
  std::size_t alive = 0;
  std::size_t most = 0;
  for (const PipelineAction& action : actions) {
    invariant(action.forward || alive > 0, "what goes backward went forward before");
    alive += action.forward ? 1 : std::size_t(0) - 1;
    most = std::max(most, alive);
  }
  return most;
}

// Returns the bubble by its formula, in thousandths, rounded.
inline std::int64_t bubble_permille(ScheduleKind kind, std::size_t devices, std::size_t stages_each,
                                    std::size_t microbatches) {
  const std::size_t work = microbatches * (kind == ScheduleKind::kInterleaved ? stages_each : 1);
  const std::size_t whole = work + devices - 1;
  return static_cast<std::int64_t>((2000 * (devices - 1) + whole) / (2 * whole));
}

struct PlacedAction {
  std::size_t device = 0;
  PipelineAction action;
};

// Returns all actions in one possible order. A forward comes after that of the previous stage, and
// a backward after its own forward and the backward of the next stage. The order goes by rounds: in
// each, every device that can takes its next action. Throws std::invalid_argument if no device can
// go on.
inline std::vector<PlacedAction> in_order(const Schedule& schedule) {
  const std::size_t m = schedule.microbatches;
  std::vector<char> forwards(schedule.stages * m);
  std::vector<char> backwards(schedule.stages * m);
  std::vector<std::size_t> at(schedule.devices.size());
  std::vector<PlacedAction> order;
  std::size_t all = 0;
  for (const auto& actions : schedule.devices) all += actions.size();
  const auto ready = [&](const PipelineAction& action) {
    invariant(action.stage < schedule.stages, "an action's stage is one of the schedule's");
    invariant(action.microbatch < m, "an action's micro-batch is one of the step's");
    const std::size_t here = action.stage * m + action.microbatch;
    if (action.forward) return action.stage == 0 || forwards[here - m] != 0;
    const bool last = action.stage + 1 == schedule.stages;
    return forwards[here] != 0 && (last || backwards[here + m] != 0);
  };
  while (order.size() < all) {
    const std::size_t before = order.size();
    for (std::size_t device = 0; device < schedule.devices.size(); ++device) {
      const auto& actions = schedule.devices[device];
      if (at[device] == actions.size() || !ready(actions[at[device]])) continue;
      order.push_back({device, actions[at[device]++]});
    }
    if (order.size() == before) {
      throw std::invalid_argument("no device can go on: each waits for another one");
    }
    for (std::size_t i = before; i < order.size(); ++i) {
      const PipelineAction& action = order[i].action;
      char& done = (action.forward ? forwards : backwards)[action.stage * m + action.microbatch];
      invariant(done == 0, "a stage takes a micro-batch once in each direction");
      done = 1;
    }
  }
  return order;
}

}  // namespace ferry
