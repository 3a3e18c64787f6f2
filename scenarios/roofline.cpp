#include "scenarios/roofline.h"

#include <algorithm>

#include "formats/limits.h"
#include "formats/op_products.h"
#include "scenarios/matrix_time.h"

namespace ferry {
namespace {

using Wide = WideNs;

constexpr Wide kMost = limits::kTimeNs + 1;  // too long for any step

// Returns amount / (rate × percent / 100) in ns, rounded up; `rate` is per microsecond.
Wide duration_ns(Wide amount, std::int64_t rate, std::int64_t percent) {
  const Wide below = Wide{rate} * percent;
  return (amount * 1000 * 100 + below - 1) / below;
}

// Time to move bytes from and to the memory, without those in the cache.
Wide moving(const Op& op, const Hardware& hardware) {
  const Wide bytes = Wide{op.read_bytes} - op.cached_bytes + op.written_bytes;
  return duration_ns(bytes, hardware.memory_bytes_per_us, hardware.memory_percent);
}

Wide from_cache(const Op& op, const Hardware& hardware) {
  return op.cached_bytes > 0 ? duration_ns(op.cached_bytes, hardware.l2_bytes_per_us, 100) : 0;
}

}  // namespace

std::int64_t kernel_ns(const Op& op, DType compute, const Hardware& hardware) {
  if (op.measured_ns > 0) return op.measured_ns;
  const std::int64_t share =
      is_attention(op.name) ? hardware.attention_percent : hardware.matmul_percent;
  Wide computing = 0;
  for (const MatrixProduct& product : op.products) {
    computing += product_ns(product, compute, hardware);
  }
  if (computing == 0) computing = duration_ns(op.flops, hardware.flops_per_us_of(compute), share);
  const Wide shortest = Wide{hardware.kernel_min_ns} * op.kernels;
  const Wide longest =
      std::max({computing, moving(op, hardware) + from_cache(op, hardware), shortest, Wide{1}});
  return static_cast<std::int64_t>(std::min(longest, kMost));
}

std::int64_t moving_ns(const Op& op, const Hardware& hardware) {
  return static_cast<std::int64_t>(std::min(moving(op, hardware), kMost));
}

}  // namespace ferry
