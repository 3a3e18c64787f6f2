// A virtual GPU for any C++ program that uses LibTorch's CUDA, by LD_PRELOAD:
//
//   FERRY_PRELOADED_GPU=1 LD_PRELOAD=libferry_virtual_gpu.so ferry-train gpt --device cuda
//
// The virtual CUDA runtime and LibTorch's operators on it, in one library, so that its names win
// over libcudart's. It is a test tool: it says on stderr that there is no GPU, and so does the
// device's name. Without FERRY_PRELOADED_GPU=1 there is no device.
//
//   FERRY_PRELOADED_GPU_TEMPO    eager, lazy, random (the default) or mixed: when work runs
//   FERRY_PRELOADED_GPU_SEED     of the tempo; 0 unless given
//   FERRY_PRELOADED_GPU_DEVICES  1 to 8; 1 unless given
//   FERRY_PRELOADED_GPU_GIB      memory of each; 16 unless given. As much may be pinned.
//
// A value that makes no sense ends the process with exit code 2.
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "vgpu/operators/kernels.h"
#include "vgpu/operators/libtorch.h"
#include "vgpu/runtime/control.h"

namespace ferry::virtual_gpu {
namespace {

[[noreturn]] void refuse(const char* variable, const char* value, const char* expected) {
  std::fprintf(stderr, "virtual GPU: %s=%s: expected %s\n", variable, value, expected);
  std::exit(2);
}

std::int64_t number(const char* variable, std::int64_t otherwise, std::int64_t least,
                    std::int64_t most, const char* expected) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return otherwise;
  std::int64_t read = 0;
  const char* const end = value + std::strlen(value);
  const auto [at, error] = std::from_chars(value, end, read);
  if (error != std::errc() || at != end || read < least || read > most) {
    refuse(variable, value, expected);
  }
  return read;
}

vgpu::Tempo tempo() {
  constexpr std::array<std::string_view, 4> kNames = {"eager", "lazy", "random", "mixed"};
  const char* const variable = "FERRY_PRELOADED_GPU_TEMPO";
  const char* const value = std::getenv(variable);
  if (value == nullptr) return vgpu::Tempo::kRandom;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == value) return static_cast<vgpu::Tempo>(i);
  }
  refuse(variable, value, "eager, lazy, random or mixed");
}

// LibTorch's libraries are initialised by now: this one needs them.
__attribute__((constructor)) void start() {
  const char* const wanted = std::getenv("FERRY_PRELOADED_GPU");
  if (wanted == nullptr || std::string_view(wanted) != "1") return vgpu::set_devices(0);
  const std::int64_t gib = number("FERRY_PRELOADED_GPU_GIB", 16, 1, 1 << 20, "GiB, at least 1");
  const std::int64_t most = INT64_MAX;
  vgpu::set_devices(static_cast<int>(number("FERRY_PRELOADED_GPU_DEVICES", 1, 1, 8, "1 to 8")));
  vgpu::set_device_bytes(gib << 30);
  vgpu::set_pinned_bytes(gib << 30);
  vgpu::start_libtorch();
  vgpu::install_kernels();
  vgpu::set_tempo(tempo(), static_cast<std::uint64_t>(number("FERRY_PRELOADED_GPU_SEED", 0, 0, most,
                                                             "a number, at least 0")));
  std::fputs("virtual GPU: no GPU; operators run on the CPU\n", stderr);
}

}  // namespace
}  // namespace ferry::virtual_gpu
