// Entry points: kernels, which the virtual GPU does not run. What a program's compiled kernels
// register is kept by name, so that a launch can say what it was.
//
// One kind has its effect: a kernel called spin_kernel, which LibTorch (at::cuda::sleep, in cycles)
// and Ferry's tests (in nanoseconds) have for keeping a stream busy.
//
// Libraries register before main, and before this library's own statics: there are none that need
// a constructor.
#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

constexpr std::int64_t kCyclesPerMicrosecond = 1500;  // at the clocks that today's GPUs have

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::map<const void*, std::string>& names() {  // by the host's function; under the runtime's lock
  static auto* const all = new std::map<const void*, std::string>;
  return *all;
}

std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> of_caller;
  return of_caller;
}

// "void scale<float>(float*, int)".
std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string readable = text;
  std::free(text);
  return readable;
}

cudaError_t launch_kernel(const void* function, void** arguments, cudaStream_t stream) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.mutex());
  if (const cudaError_t error = runtime.enter("cudaLaunchKernel"); error != cudaSuccess) {
    return error;
  }
  const auto found = names().find(function);
  const std::string name = found != names().end() ? found->second : std::string();
  if (name.find("spin_kernel") == std::string::npos) {
    const std::string readable = demangled(name);
    return runtime.refuse(readable, "the virtual GPU runs no compiled kernel: " + readable);
  }
  std::int64_t duration = 0;
  std::memcpy(&duration, arguments[0], sizeof duration);
  const bool cycles = name.find("ferry") == std::string::npos;
  const std::int64_t microseconds = duration / (cycles ? kCyclesPerMicrosecond : 1000);
  runtime.queues().sleep(runtime.streams().use(stream), microseconds);
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(Runtime::get().mutex());
  names().emplace(function, name);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  const Configuration top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t,
                               cudaStream_t stream) {
  return launch_kernel(kernel, arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, std::size_t,
                             cudaStream_t stream) {
  return launch_kernel(function, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* function,
                                void** arguments) {
  return launch_kernel(function, arguments, configuration->stream);
}

}  // extern "C"

}  // namespace ferry::vgpu
