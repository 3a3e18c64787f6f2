// Which kernels compute, and which bytes have their values by that (KernelValues, control.h).
//
// Where kernels compute little, one computes only if it reads known bytes alone, and reads and
// writes few in all. What it writes is known then, and otherwise is not. Whoever launches a kernel,
// or a copy, asks whether it computes, and then notes what it writes: in that order, and before
// other work is given, for known is what will be known once the work so far has run.
//
// Page-locked memory is known from the start, since the host writes it. Addresses are this
// process's, not the log's. The runtime's lock guards it (runtime.h). Not modelled: that the host
// overwrites what a copy left unknown in page-locked memory.
#pragma once

#include <span>

#include "vgpu/runtime/control.h"
#include "vgpu/runtime/known_bytes.h"

namespace ferry::vgpu {

class KnownValues {
 public:
  void set(KernelValues values) { values_ = values; }
  KernelValues values() const { return values_; }

  // A kernel that reads and writes these is to compute.
  bool computes(std::span<const Range> reads, std::span<const Range> writes) const;
  // A kernel writes these: it computes, or does not.
  void note_written(std::span<const Range> writes, bool computes);

  bool is_known(Range range) const;
  void add(Range range) { known_.add(range); }
  void remove(Range range) { known_.remove(range); }

 private:
  KernelValues values_ = KernelValues::kComputed;
  KnownBytes known_;  // where not all are computed
};

}  // namespace ferry::vgpu
