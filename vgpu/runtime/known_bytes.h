// The bytes, of devices and of page-locked memory, whose values are known while most kernels do not
// compute (KernelValues): what the host wrote, and what small kernels made of known bytes.
//
// It is a set of disjoint ranges. It knows neither memory nor kernels: known_values.h decides what
// is added. The runtime's lock guards it (runtime.h).
#pragma once

#include <cstdint>
#include <map>

#include "formats/stream_op.h"

namespace ferry::vgpu {

class KnownBytes {
 public:
  // True for an empty range.
  bool contains(Range range) const;
  void add(Range range);
  void remove(Range range);

 private:
  std::map<std::uint64_t, std::uint64_t> pieces_;  // each range's end by its begin; disjoint
};

}  // namespace ferry::vgpu
