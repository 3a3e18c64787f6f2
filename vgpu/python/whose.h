// Says who a Python function belongs to, by the path of its file: the program, PyTorch or nobody.
// What Inductor writes is nobody's. Of its launchers, which have no file, the name is known.
// Places in the log are lines of the program if possible (places.h). PyTorch's files are those in
// `site-packages/torch`, so a PyTorch elsewhere counts as the program.
#pragma once

#include <cstdint>
#include <string_view>

namespace ferry::vgpu {

enum class Whose : std::uint8_t {
  kPrograms,
  kTorchs,
  kNobodys,  // passes calls on: in the interpreter, the launcher, PyTorch's dispatcher
};

Whose whose(std::string_view file, std::string_view function);

}  // namespace ferry::vgpu
