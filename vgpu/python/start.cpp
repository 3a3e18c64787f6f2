// What launch.py calls: the virtual GPU begins, and its log ends.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <exception>
#include <string>

#include "vgpu/operators/kernels.h"
#include "vgpu/operators/libtorch.h"
#include "vgpu/python/places.h"
#include "vgpu/python/run_log.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

RunLog* run_log = nullptr;  // never destroyed: operators run until the process ends

void start(const char* card, std::int64_t device_bytes, std::int64_t pinned_bytes, int tempo,
           std::uint64_t seed, const char* log) {
  set_device_name(card);
  set_device_bytes(device_bytes);
  set_pinned_bytes(pinned_bytes);
  set_devices(1);
  keep_addresses(true);
  run_log = new RunLog(log);
  start_libtorch();
  install_kernels();
  find_places();
  set_tempo(static_cast<Tempo>(tempo), seed);
  set_listener(run_log);
  // The log is this process's; what a forked child does is not in it.
  ::pthread_atfork(nullptr, nullptr, [] { set_listener(nullptr); });
}

// Waits until autograd's thread of the device has dropped what its last backward left: for a Python
// object it needs the interpreter, and where that is gone by then the process aborts.
void settle_autograd() {
  const c10::AutoGradMode grad(true);
  try {
    const at::Tensor leaf = at::zeros({}, at::device(at::kCUDA)).requires_grad_();
    torch::autograd::backward({leaf}, {});
  } catch (const c10::Error&) {  // no memory is left, or the device has failed
  }
}

// Null, or what went wrong; valid until the next call.
template <class Call>
const char* guarded(Call&& call) {
  static std::string message;
  try {
    call();
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* ferry_vgpu_start(const char* card, std::int64_t device_bytes, std::int64_t pinned_bytes,
                             int tempo, std::uint64_t seed, const char* log) {
  return guarded([&] { start(card, device_bytes, pinned_bytes, tempo, seed, log); });
}

const char* ferry_vgpu_finish() {
  return guarded([] {
    set_listener(nullptr);
    run_log->flush();
    settle_autograd();
  });
}

}  // extern "C"

}  // namespace ferry::vgpu
