// How an entry point of the fake begins: it takes the lock, is counted, and may be told to fail.
#pragma once

#include "tests/real/fake_cuda/runtime.h"

#define FAKE_CUDA_ENTER()                                                        \
  [[maybe_unused]] auto& runtime = ::ferry::fake_cuda::Runtime::get();           \
  const std::lock_guard lock(runtime.mutex);                                     \
  if (const cudaError_t error = runtime.enter(__func__); error != cudaSuccess) { \
    return error;                                                                \
  }
