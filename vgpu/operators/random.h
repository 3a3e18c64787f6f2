// Random numbers on the virtual GPU. The operators compute with CPU kernels, which need a CPU
// generator. It is seeded from the state of a CUDA generator, so torch.cuda.manual_seed and saved
// generator states work. The numbers are replayable, but not a GPU's.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <optional>

namespace ferry::vgpu {

// Returns a CPU generator for one operator, seeded from the CUDA generator's seed and offset. The
// offset then advances. If no generator is given, the device's default one is used.
at::Generator draw(const std::optional<at::Generator>& given, c10::DeviceIndex device);

}  // namespace ferry::vgpu
