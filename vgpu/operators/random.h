// Random numbers on the virtual GPU. The operators compute with CPU kernels, which need a CPU
// generator. It is seeded from the state of a CUDA generator, so torch.cuda.manual_seed and saved
// generator states work. The numbers are replayable, but not a GPU's. An operator in a CUDA graph
// draws other numbers at each replay, as PyTorch's kernels do: they read the seed and the offset
// when they run.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <functional>
#include <optional>

namespace ferry::vgpu {

struct Drawn {
  at::Generator generator;
  // Seeds the generator. In a graph, call it whenever the operator runs; otherwise it is empty.
  std::function<void()> seed;
};

// Returns a CPU generator for one operator, seeded from the CUDA generator's seed and offset. The
// offset then advances. If no generator is given, the device's default one is used.
Drawn draw(const std::optional<at::Generator>& given, c10::DeviceIndex device);

}  // namespace ferry::vgpu
