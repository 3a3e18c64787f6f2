// The time that the host's calls for device memory take. The machine adds it only when a pool that
// was full has to give back memory before it gets more.
//
// A call takes longer for more memory. Expandable segments are mapped and unmapped page by page,
// with several calls for each page (cuMemCreate, cuMemMap and cuMemSetAccess; cuMemUnmap and
// cuMemRelease). bench/real/driver_calls.py measures all of them.
#pragma once

#include <cstdint>

#include "sim/gpu/links.h"

namespace ferry::sim {

// The driver calls that a pool has made so far. Its segments are whole MiB.
struct DriverCalls {
  std::int64_t mallocs = 0;  // cudaMalloc
  std::int64_t malloc_bytes = 0;
  std::int64_t frees = 0;  // cudaFree
  std::int64_t free_bytes = 0;
  std::int64_t pages_mapped = 0;
  std::int64_t pages_unmapped = 0;

  bool gave_back() const { return frees > 0 || pages_unmapped > 0; }
  DriverCalls since(const DriverCalls& before) const {
    return {mallocs - before.mallocs,
            malloc_bytes - before.malloc_bytes,
            frees - before.frees,
            free_bytes - before.free_bytes,
            pages_mapped - before.pages_mapped,
            pages_unmapped - before.pages_unmapped};
  }
};

struct DriverTimes {
  Time malloc_ns = 0;
  Time malloc_mib_ns = 0;  // and for each MiB
  Time free_ns = 0;
  Time free_mib_ns = 0;
  Time map_ns = 0;  // for each page
  Time unmap_ns = 0;

  Time of(const DriverCalls& calls) const {
    return calls.mallocs * malloc_ns + (calls.malloc_bytes >> 20) * malloc_mib_ns +
           calls.frees * free_ns + (calls.free_bytes >> 20) * free_mib_ns +
           calls.pages_mapped * map_ns + calls.pages_unmapped * unmap_ns;
  }
};

}  // namespace ferry::sim
