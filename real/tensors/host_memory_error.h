// The error of a full host tier, or of a machine without more memory. Python gets a MemoryError;
// ferry train and ferry calibrate exit with 3. A full disk is DiskFull (real/disk/disk_error.h).
#pragma once

#include "shared/seam/error.h"
#include "shared/seam/host_full.h"

namespace ferry::real {

class OutOfHostMemory : public Error, public HostFull {
 public:
  using Error::Error;
};

}  // namespace ferry::real
