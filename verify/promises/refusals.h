// What the core must refuse, with the words that it must say: options and shapes without sense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "shared/pipeline/balance.h"
#include "shared/pipeline/schedule.h"
#include "shared/seam/options.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// What refuses: the core's own.
struct Refusing {
  std::function<void(const CoreOptions&)> check_options = ferry::check_options;
  std::function<void(ScheduleKind, std::size_t devices, std::size_t stages_each,
                     std::size_t microbatches)>
      make_schedule = ferry::make_schedule;
  std::function<void(std::span<const std::int64_t> costs, std::size_t parts)> balance =
      [](std::span<const std::int64_t> costs, std::size_t parts) { ferry::balance(costs, parts); };
};

std::optional<Verdict> judge_refusals(const Refusing& core = {});

}  // namespace ferry::verify
