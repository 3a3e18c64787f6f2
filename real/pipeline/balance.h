// Balances by time with any clock, for tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "ferry/pipe.h"

namespace ferry::real {

using ClockNow = std::function<std::chrono::nanoseconds()>;

// Does the same as ferry::balance_by_time, with this clock instead of the steady one.
std::vector<std::int64_t> balance_by_clock(const torch::nn::Sequential& layers,
                                           std::int64_t partitions, const at::Tensor& sample,
                                           std::chrono::duration<double> timeout,
                                           const ClockNow& now);

}  // namespace ferry::real
