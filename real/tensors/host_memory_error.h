// The error of a full host tier, or of a machine without more memory.
#pragma once

#include "shared/seam/error.h"
#include "shared/seam/host_full.h"

namespace ferry::real {

class OutOfHostMemory : public Error, public HostFull {
 public:
  using Error::Error;
};

}  // namespace ferry::real
