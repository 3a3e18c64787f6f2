// Makes glibc's malloc return the memory of offloaded activations. A freed block stays resident
// unless it has pages of its own. glibc raises the size from which blocks have (M_MMAP_THRESHOLD)
// whenever such a block is freed. So activations that went to a disk would still stay in memory.
//
// fix_malloc_thresholds() fixes that size, and how much free memory the top of the heap keeps, for
// the whole process and permanently. Later calls do nothing. A device with a disk tier calls it,
// unless its options say not to. `ferry train` and `ferry calibrate` always call it (count_memory,
// real/train/memory.h). Without glibc it does nothing.
#pragma once

namespace ferry::real {

void fix_malloc_thresholds();

}  // namespace ferry::real
