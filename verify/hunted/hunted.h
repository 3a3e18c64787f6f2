// A scheduler that is hunted in the core's place: its name, how one is made for a run, what random
// steps it was made for, and what it promises beyond giving back what was saved.
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
  // `fault`: asked at each call of the device, which throws where it says so (Faulty). Null:
  // nothing fails.
  using Make = std::function<std::unique_ptr<sim::Scheduler>(
      const sim::SimDevice&, const sim::SimAutograd&, const std::shared_ptr<FaultPoint>&)>;
  std::string name;  // letters, digits, '-', '_' and '.': replay lines begin with it
  Make make;

  // What it was not made for is taken out of the random steps.
  std::vector<Feature> without = {};
  std::function<void(Recipe&)> limit = nullptr;  // any other change; twice is as once
  // Programs of its own in place of the random steps.
  std::function<Program(std::uint64_t number)> program = nullptr;

  // A call of the device, or an allocation, fails: the cause reaches whoever called, and nothing
  // is left when the scheduler is gone. Calls that it makes in finish() do not fail.
  bool survives_failures = false;
  // Every saved tensor goes to the host, but parameters, buffers and what is below 1 KiB.
  bool moves_all = false;
  // No bytes go to the host that it holds already, and no parameters or buffers.
  bool moves_once = false;
  // The device's peak is at most so far above that of a run that keeps all and recomputes nothing.
  std::optional<std::int64_t> peak_bytes_above_keep = {};
};

// Takes out of the trial what the scheduler was not made for.
void limit(const HuntedScheduler& scheduler, Trial& trial);

}  // namespace ferry::verify
