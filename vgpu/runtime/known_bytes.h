// Which bytes of the devices and of page-locked memory have their values, where kernels compute
// little (KernelValues): what small kernels make of known bytes, and what the host wrote.
//
// It is a set of ranges that do not meet, and knows neither memory nor kernels: known_values.h
// decides what is added. The runtime's lock guards it (runtime.h).
#pragma once

#include <cstdint>
#include <map>

#include "formats/stream_op.h"

namespace ferry::vgpu {

class KnownBytes {
 public:
  // True for no bytes.
  bool contains(Range range) const;
  void add(Range range);
  void remove(Range range);

 private:
  std::map<std::uint64_t, std::uint64_t> pieces_;  // end by begin; none meets another
};

}  // namespace ferry::vgpu
