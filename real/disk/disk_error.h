// The errors of the disk tier, as exceptions that carry their cause.
//
// Every message names the directory and, where the system refused, errno's text. A caller that can
// do without (by keeping a tensor on its device) catches DiskFull; anything else is a DiskError.
// Misuse, such as reading a slot that was never written, is a std::logic_error and no DiskError.
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

// The store's own limit is reached, or the file system is full.
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
  // The bytes left under the store's limit, or in the file system (-1: unknown).
  std::int64_t free_bytes() const noexcept { return free_bytes_; }

 private:
  std::int64_t asked_bytes_;
  std::int64_t in_use_bytes_;
  std::int64_t free_bytes_;
};

}  // namespace ferry::real
