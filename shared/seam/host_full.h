// A base class for errors of a device whose host side has no room for more bytes: the disk is full,
// a limit is reached, or memory ran out. The core recognises them by this base.
#pragma once

namespace ferry {

struct HostFull {
 protected:
  HostFull() = default;
  HostFull(const HostFull&) = default;
  HostFull& operator=(const HostFull&) = default;
  ~HostFull() = default;
};

}  // namespace ferry
