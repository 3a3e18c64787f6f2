// Describes a scheduler that is tested instead of the core: its name, how to make one for a run,
// which random steps it supports, and which promises the oracles check.
//
// Every scheduler must give back what was saved, with all accesses in order, and leave nothing
// behind. The promises below are extra, and are checked only if they are set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "shared/adaptors/observed.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/scheduler.h"
#include "verify/hunted/features.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

struct HuntedScheduler {
  // Makes a scheduler for one run. `fault` is asked at each call of the device, which throws if it
  // says so (Faulty). If it is null, no call fails.
  using Make = std::function<std::unique_ptr<sim::Scheduler>(
      const sim::SimDevice&, const sim::SimAutograd&, const std::shared_ptr<FaultPoint>&)>;
  std::string name;  // letters, digits, '-', '_' and '.'; replay lines begin with it
  Make make;

  // Features that the scheduler does not support. They are removed from the random steps.
  std::vector<Feature> without = {};
  std::function<void(Recipe&)> limit = nullptr;  // another change to the recipe; must be idempotent
  // If set, the scheduler has its own programs, which replace the random steps.
  std::function<Program(std::uint64_t number)> program = nullptr;

  // Promise: if a call of the device or an allocation fails, the caller gets the cause, and nothing
  // is left when the scheduler is gone. Calls that it makes in finish() do not fail.
  bool survives_failures = false;
  // Promise: every saved tensor goes to the host, except parameters, buffers and tensors below 1
  // KiB.
  bool moves_all = false;
  // Promise: no parameter or buffer goes to the host, and no bytes that the host already has.
  bool moves_once = false;
  // Promise: the peak of device memory is at most this far above the peak of a run that keeps
  // everything and recomputes nothing.
  std::optional<std::int64_t> peak_bytes_above_keep = {};
};

// Removes from the trial what the scheduler does not support.
void limit(const HuntedScheduler& scheduler, Trial& trial);

}  // namespace ferry::verify
