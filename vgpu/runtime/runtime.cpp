#include "vgpu/runtime/runtime.h"

#include <cstdlib>

namespace ferry::vgpu {

Runtime& Runtime::get() {
  static auto* const runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() {
  // Under `ferry run` a process has no device until its launcher has installed the operators. A
  // child process has no launcher and never gets a device (asking.h).
  if (std::getenv("FERRY_VIRTUAL_GPU") != nullptr) settings_.devices = 0;
}

cudaError_t Runtime::enter(const char* name) {
  faults_.count_call(name);
  if (const cudaError_t error = faults_.take_error(name); error != cudaSuccess) {
    return fail_with(error);
  }
  schedule_.host_calls();
  return cudaSuccess;
}

cudaError_t Runtime::refuse(const std::string& name, std::string why) {
  note_refusal(name);
  thread().refused = std::move(why);
  return fail_with(cudaErrorNotSupported);
}

void Runtime::note_refusal(const std::string& name) {
  std::string* const kept = thread().attempt;
  if (kept == nullptr) {
    faults_.count_refusal(name);
  } else if (kept->empty()) {
    *kept = name;
  }
}

void Runtime::run_everything() {
  schedule_.finish_everything();
  freed_.unmap();
}

}  // namespace ferry::vgpu
