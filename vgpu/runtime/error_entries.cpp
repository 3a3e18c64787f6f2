// The entry points of CUDA's runtime for errors: the calling thread's last one (thread.h), and the
// names and texts of those that this runtime returns. The texts are CUDA's.
#include <algorithm>
#include <iterator>
#include <utility>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

struct Error {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ERROR(name, text) \
  { name, #name, text }
constexpr Error kErrors[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureInvalidated,
          "operation failed due to a previous error during capture"),
    ERROR(cudaErrorStreamCaptureMerge,
          "operation would result in a merge of separate capture sequences"),
    ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ERROR(cudaErrorStreamCaptureIsolation,
          "dependency created on uncaptured work in another stream"),
    ERROR(cudaErrorCapturedEvent,
          "operation not permitted on an event last recorded in a capturing stream"),
};
#undef ERROR

const Error* find(cudaError_t error) {
  const auto* const found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                         [&](const Error& each) { return each.error == error; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(thread().last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return thread().last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  const Error* const found = find(error);
  return found == nullptr ? "cudaErrorUnknown" : found->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorNotSupported && !thread().refused.empty()) return thread().refused.c_str();
  const Error* const found = find(error);
  return found == nullptr ? "cudaErrorUnknown" : found->text;
}

}  // extern "C"

}  // namespace ferry::vgpu
