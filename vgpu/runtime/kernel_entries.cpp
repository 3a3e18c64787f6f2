// Entry points for kernels. The virtual GPU runs no compiled kernel. It keeps the names under which
// a program registers its kernels, so that the error of a launch can name the kernel.
//
// One kind of kernel has an effect: spin_kernel, with which LibTorch (at::cuda::sleep, in cycles)
// and Ferry's tests (in nanoseconds) keep a stream busy.
//
// Libraries register their kernels before main, and before the static objects of this library are
// constructed. So there are no static objects here that need a constructor.
#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

constexpr std::int64_t kCyclesPerMicrosecond = 1500;  // about the clock rate of today's GPUs

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::map<const void*, std::string>& names() {  // keyed by function; guarded by the runtime's lock
  static auto* const all = new std::map<const void*, std::string>;
  return *all;
}

std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> of_caller;
  return of_caller;
}

// Turns a mangled name into readable text, such as "void scale<float>(float*, int)".
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
  const std::string readable = demangled(name);
  const bool cycles = readable.starts_with("at::cuda::");
  const bool spins = readable.find("::spin_kernel(") != std::string::npos &&
                     (cycles || readable.starts_with("ferry::real::"));
  if (!spins) {
    return runtime.refuse(readable, "the virtual GPU runs no compiled kernel: " + readable);
  }
  std::int64_t duration = 0;
  std::memcpy(&duration, arguments[0], sizeof duration);
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
