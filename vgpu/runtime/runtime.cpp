#include "vgpu/runtime/runtime.h"

#include <cstdlib>
#include <utility>

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

namespace {

bool stays_on_device(const Cost& cost) {
  const auto* const copy = std::get_if<CopyCost>(&cost);
  return copy == nullptr || copy->kind == CopyKind::kDeviceToDevice;
}

}  // namespace

void Runtime::issue(Stream& stream, StreamOp op, Work work) {
  if (thread().rehearsals > 0 && stays_on_device(work.cost)) {
    thread().rehearsed_ns += time_.duration(work.cost);
    return;
  }
  const bool captured = graphs_.of(stream) != nullptr;
  if (!captured) {
    log_.tell(op);
    return queues_.enqueue(stream, std::move(work));
  }
  log_.tell(*graphs_.add(stream, &op, std::move(work), thread().place));
}

cudaError_t Runtime::refuse_in_capture(const Stream& stream) {
  if (graphs_.of(stream) == nullptr) return cudaSuccess;
  graphs_.spoil(stream);
  return fail_with(cudaErrorStreamCaptureUnsupported);
}

void Runtime::run_everything() {
  schedule_.finish_everything();
  freed_.unmap();
}

}  // namespace ferry::vgpu
