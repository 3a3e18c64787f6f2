#include "vgpu/runtime/known_values.h"

#include <cstdint>

namespace ferry::vgpu {

bool KnownValues::computes(std::span<const Range> reads, std::span<const Range> writes) const {
  if (values_ == KernelValues::kComputed) return true;
  std::uint64_t bytes = 0;
  for (const Range range : reads) {
    if (!known_.contains(range)) return false;
    bytes += range.bytes;
  }
  for (const Range range : writes) bytes += range.bytes;
  return bytes <= kFewBytes;
}

void KnownValues::note_written(std::span<const Range> writes, bool computes) {
  if (values_ == KernelValues::kComputed) return;
  for (const Range range : writes) computes ? known_.add(range) : known_.remove(range);
}

bool KnownValues::is_known(Range range) const {
  return values_ == KernelValues::kComputed || known_.contains(range);
}

}  // namespace ferry::vgpu
