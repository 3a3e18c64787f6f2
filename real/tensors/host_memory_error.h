// The error of a full host tier, or of a machine without more memory.
#pragma once

#include <stdexcept>

#include "shared/seam/host_full.h"

namespace ferry::real {

class OutOfHostMemory : public std::runtime_error, public HostFull {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ferry::real
