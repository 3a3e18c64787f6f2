// What CUDA, and the log, keep for each thread of the program: its device, its own default streams,
// its last error, and what it is doing.
//
// It is a plain value that only its own thread reads and writes, so no lock guards it. A thread's
// default streams are made at their first use (streams.h) and stay when the thread ends, as the
// other streams' work may wait for theirs.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <string>

#include "formats/stream_op.h"
#include "vgpu/runtime/settings.h"

namespace ferry::vgpu {

struct Stream;

struct Thread {
  int device = 0;
  std::array<Stream*, kDevices> default_streams = {};  // per-thread ones, once they are used
  cudaError_t last_error = cudaSuccess;
  Step step = Step::kUser;
  std::string refused = {};        // why the last call that is not there failed
  const char* place = nullptr;     // in the program (control.h)
  int in_pinned_allocator = 0;     // times
  std::string* attempt = nullptr;  // what is refused meanwhile (control.h)
  bool waits_for_copies = false;   // (control.h)
  bool learns = false;             // who records for programs (pending_free.h)
};

// The calling thread's.
Thread& thread();

// Remembers the error as the calling thread's last, and returns it.
cudaError_t fail_with(cudaError_t error);

}  // namespace ferry::vgpu
