#include "vgpu/python/whose.h"

#include <algorithm>
#include <array>

namespace ferry::vgpu {
namespace {

constexpr std::string_view kTorch = "/site-packages/torch/";

// PyTorch's files that only pass a call on.
constexpr std::array<std::string_view, 16> kPassOn = {
    "_compile.py",          "_dynamo/eval_frame.py", "_ops.py",
    "_tensor.py",           "autograd/__init__.py",  "autograd/function.py",
    "autograd/graph.py",    "cuda/__init__.py",      "cuda/streams.py",
    "library.py",           "nn/modules/module.py",  "overrides.py",
    "utils/_contextlib.py", "utils/_device.py",      "utils/_python_dispatch.py",
    "utils/_pytree.py"};

// Triton's functions that a kernel's launch goes through.
constexpr std::string_view kTriton = "/site-packages/triton/";

// Returns whether the file belongs to the launcher or replaces functions of PyTorch.
bool is_launchers(std::string_view file) {
  return file.ends_with("/vgpu/launch.py") || file.find("/vgpu/ferry_") != std::string_view::npos;
}

}  // namespace

Whose whose(std::string_view file) {
  if (file.starts_with("<frozen ") || is_launchers(file)) return Whose::kNobodys;
  if (file.find(kTriton) != std::string_view::npos) return Whose::kNobodys;
  const std::size_t torch = file.find(kTorch);
  if (torch == std::string_view::npos) return Whose::kPrograms;
  const std::string_view within = file.substr(torch + kTorch.size());
  const bool passes_on = std::find(kPassOn.begin(), kPassOn.end(), within) != kPassOn.end();
  return passes_on ? Whose::kNobodys : Whose::kTorchs;
}

}  // namespace ferry::vgpu
