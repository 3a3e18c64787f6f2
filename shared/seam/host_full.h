// A base of the errors with which a device says that its host side has no room for more bytes: a
// full disk, a limit reached, no memory. So the core knows them whatever else they are.
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
