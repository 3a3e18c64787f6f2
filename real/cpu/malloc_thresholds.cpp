#include "real/cpu/malloc_thresholds.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace ferry::real {

void fix_malloc_thresholds() {
#ifdef __GLIBC__
  [[maybe_unused]] static const bool once = [] {
    constexpr int kMmapThreshold = 1 << 18;  // a block of this size has its own pages
    constexpr int kTrimThreshold = 1 << 20;
    mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
    mallopt(M_TRIM_THRESHOLD, kTrimThreshold);
    return true;
  }();
#endif
}

}  // namespace ferry::real
