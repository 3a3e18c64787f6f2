// The errors of the disk tier. Each message names the directory and, if the system reported an
// error, errno's text.
//
// A caller that can do without the disk, by keeping a tensor on its device, catches DiskFull. All
// others are DiskError. Misuse, such as reading a slot that was never written, is a
// std::logic_error.
#pragma once

#include <cstdint>
#include <string>

#include "shared/seam/error.h"
#include "shared/seam/host_full.h"

namespace ferry::real {

class DiskError : public Error {
 public:
  using Error::Error;
};

// The limit of the store is reached, or the file system is full.
class DiskFull : public DiskError, public HostFull {
 public:
  DiskFull(const std::string& what, std::int64_t asked_bytes, std::int64_t in_use_bytes,
           std::int64_t free_bytes)
      : DiskError(what),
        asked_bytes_(asked_bytes),
        in_use_bytes_(in_use_bytes),
        free_bytes_(free_bytes) {}

  std::int64_t asked_bytes() const noexcept { return asked_bytes_; }
  std::int64_t in_use_bytes() const noexcept { return in_use_bytes_; }
  // The bytes left below the store's limit, or in the file system; -1 if unknown.
  std::int64_t free_bytes() const noexcept { return free_bytes_; }

 private:
  std::int64_t asked_bytes_;
  std::int64_t in_use_bytes_;
  std::int64_t free_bytes_;
};

}  // namespace ferry::real
