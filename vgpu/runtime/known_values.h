// Decides which kernels compute, and so which bytes have known values (KernelValues, control.h).
//
// Unless all kernels compute, a kernel computes only if it reads nothing but known bytes, and reads
// and writes few bytes in total. Then what it writes is known; otherwise it is not. For a kernel or
// a copy, call `computes` first, then `note_written`, and only then give other work: the class has
// the state after all work given so far.
//
// Page-locked memory is known from the start, because the host writes it. Addresses are this
// process's, not the log's. The runtime's lock guards the class (runtime.h). Not modelled:
// page-locked bytes that a copy left unknown become known again when the host overwrites them.
#pragma once

#include <span>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/known_bytes.h"

namespace ferry::vgpu {

class KnownValues {
 public:
  void set(KernelValues values) { values_ = values; }
  KernelValues values() const { return values_; }

  // Returns whether a kernel with these reads and writes has to compute.
  bool computes(std::span<const Range> reads, std::span<const Range> writes) const;
  // Marks what a kernel writes: known if the kernel computes, not known if it does not.
  void note_written(std::span<const Range> writes, bool computes);

  bool is_known(Range range) const;
  void add(Range range) { known_.add(range); }
  void remove(Range range) { known_.remove(range); }

 private:
  KernelValues values_ = KernelValues::kComputed;
  KnownBytes known_;  // not used if all kernels compute
};

}  // namespace ferry::vgpu
