// The probe of a GPU. It registers itself when a program that links it starts.
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "real/calibrate/host.h"
#include "real/calibrate/probe_of.h"
#include "real/cuda/cuda_device.h"

namespace ferry::real::calibrate {
namespace {

// Returns a text like "driver 580.82.07, CUDA 13.0".
std::string driver_of() {
  int version = 0;
  std::string text = "CUDA unknown";
  if (cudaDriverGetVersion(&version) == cudaSuccess) {
    text = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  }
  // The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Wed …". The driver's
  // version is the first word with a dot.
  const std::string module = field_of("/proc/driver/nvidia/version", "NVRM version");
  for (std::size_t at = 0; at < module.size();) {
    const std::size_t end = std::min(module.find(' ', at), module.size());
    const std::string word = module.substr(at, end - at);
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos) {
      return fmt::format("driver {}, {}", word, text);
    }
    at = end + 1;
  }
  return text;
}

std::unique_ptr<Probe> make_cuda(const std::filesystem::path&) {
  CudaDevice device({.index = 0});
  const cudaDeviceProp* const properties = at::cuda::getDeviceProperties(0);
  Machine machine;
  machine.name = properties->name;
  machine.driver = driver_of();
  machine.memory_bytes = static_cast<std::int64_t>(properties->totalGlobalMem);
  machine.host_memory_bytes = device.host_usage().total_bytes;
  machine.host_threads = threads();
  machine.multiprocessors = properties->multiProcessorCount;
  machine.compute_capability = properties->major * 10 + properties->minor;
  return std::make_unique<ProbeOf<CudaDevice>>(
      std::move(device), c10::Device(c10::DeviceType::CUDA, 0), std::move(machine),
      std::vector<HostMemory>{HostMemory::kPinned, HostMemory::kPageable});
}

[[maybe_unused]] const bool at_load = (register_probe(c10::DeviceType::CUDA, &make_cuda), true);

}  // namespace
}  // namespace ferry::real::calibrate

// Referring to this name (--undefined) makes the linker include this file.
extern "C" void ferry_link_calibrate_cuda() {}
