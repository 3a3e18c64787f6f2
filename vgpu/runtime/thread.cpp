#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {

Thread& thread() {
  thread_local Thread of_caller;
  return of_caller;
}

cudaError_t fail_with(cudaError_t error) {
  thread().last_error = error;
  return error;
}

}  // namespace ferry::vgpu
