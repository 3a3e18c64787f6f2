// The functions that ferry_views.py calls. They report to the log what the host does with
// page-locked memory without an operator.
#include <cstdint>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {

extern "C" {

int ferry_vgpu_is_page_locked(std::uint64_t address, std::uint64_t bytes) {
  return is_pinned(reinterpret_cast<const void*>(address), bytes) ? 1 : 0;
}

// The calling thread reads or writes these bytes now. `name` names the call that does it.
void ferry_vgpu_host_access(int writes, std::uint64_t address, std::uint64_t bytes,
                            const char* name) {
  const AtPlace at_place;
  note_host_access(writes != 0, {address, bytes}, name);
}

// The program has a view of these bytes from now on, or has it no longer. What it does through the
// view is not reported.
void ferry_vgpu_host_view(int begins, std::uint64_t address, std::uint64_t bytes,
                          const char* name) {
  const AtPlace at_place;
  note_host_view(begins != 0, {address, bytes}, name);
}

}  // extern "C"

}  // namespace ferry::vgpu
