// glibc's malloc and offloading: a freed block stays resident unless it has pages of its own, and
// glibc raises the size from which blocks have (M_MMAP_THRESHOLD) whenever such a block is freed.
// So activations that went to a disk would stay in memory all the same.
//
// fix_malloc_thresholds() fixes that size and how much is kept at the heap's top, for the whole
// process and for good; later calls do nothing. A device with a disk tier calls it, unless its
// options say not to. Elsewhere than with glibc it does nothing.
#pragma once

namespace ferry::real {

void fix_malloc_thresholds();

}  // namespace ferry::real
