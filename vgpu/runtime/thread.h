// The data that CUDA and the log keep for each thread of the program: its device, its default
// streams, its last error, and what it is doing.
//
// This is a plain value that only its own thread reads and writes, so no lock guards it. A thread's
// default streams are created at their first use (streams.h). They stay when the thread ends,
// because work of other streams may wait for theirs.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <string>

#include "formats/stream_op.h"
#include "vgpu/runtime/settings.h"

namespace ferry::vgpu {

struct Stream;

struct Thread {
  int device = 0;
  std::array<Stream*, kDevices> default_streams = {};  // per-thread ones; null until used
  cudaError_t last_error = cudaSuccess;
  Step step = Step::kUser;
  std::string refused = {};        // why the last unsupported call failed
  const char* place = nullptr;     // place in the program (control.h)
  int in_pinned_allocator = 0;     // nested InPinnedAllocator objects
  std::string* attempt = nullptr;  // the name that an Attempt notes (control.h)
  bool waits_for_copies = false;   // WaitsForCopies (control.h)
  bool learns = false;             // during learn_recorder (control.h)
  int rehearsals = 0;              // nested rehearsals (control.h)
  std::int64_t rehearsed_ns = 0;   // the card's time for what was rehearsed
};

// The data of the calling thread.
Thread& thread();

// Remembers the error as the calling thread's last, and returns it.
cudaError_t fail_with(cudaError_t error);

}  // namespace ferry::vgpu
