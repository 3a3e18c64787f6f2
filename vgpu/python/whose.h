// Whose a Python function is, by the path of its file.
#pragma once

#include <cstdint>
#include <string_view>

namespace ferry::vgpu {

enum class Whose : std::uint8_t {
  kPrograms,
  kTorchs,
  kNobodys,  // it passes calls on: the interpreter's, the launcher's, PyTorch's dispatcher
};

Whose whose(std::string_view file);

}  // namespace ferry::vgpu
