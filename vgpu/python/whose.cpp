#include "vgpu/python/whose.h"

#include <algorithm>
#include <array>

namespace ferry::vgpu {
namespace {

constexpr std::string_view kTorch = "/site-packages/torch/";

// PyTorch's files that only pass a call on.
constexpr std::array<std::string_view, 15> kPassOn = {
    "_compile.py",          "_ops.py",
    "_tensor.py",           "autograd/__init__.py",
    "autograd/function.py", "autograd/graph.py",
    "cuda/__init__.py",     "cuda/streams.py",
    "library.py",           "nn/modules/module.py",
    "overrides.py",         "utils/_contextlib.py",
    "utils/_device.py",     "utils/_python_dispatch.py",
    "utils/_pytree.py"};

// The folders of torch.compile and of its control flow, which stand between a call of what was
// compiled and its kernels.
constexpr std::array<std::string_view, 4> kCompiler = {"_dynamo/", "_functorch/",
                                                       "_higher_order_ops/", "_inductor/"};

// Triton's functions that a kernel's launch goes through.
constexpr std::string_view kTriton = "/site-packages/triton/";

// Returns whether the file belongs to the launcher or replaces functions of PyTorch.
bool is_launchers(std::string_view file) {
  return file.ends_with("/vgpu/launch.py") || file.find("/vgpu/ferry_") != std::string_view::npos;
}

// Returns whether Inductor wrote the file: it names each after a hash of what is in it, in a folder
// that has two letters of that name.
bool is_inductors(std::string_view file) {
  constexpr std::string_view kEnd = ".py";
  constexpr std::size_t kName = 52;
  const std::size_t name = file.rfind('/') + 1;  // 0 if there is none
  if (name < 3 || !file.ends_with(kEnd)) return false;
  return file.size() - name == kName + kEnd.size() && file[name] == 'c' &&
         file.substr(name - 3, 2) == file.substr(name + 1, 2);
}

}  // namespace

Whose whose(std::string_view file, std::string_view function) {
  if (file.starts_with("<frozen ") || is_launchers(file)) return Whose::kNobodys;
  if (file == "<string>" && function == "launcher") return Whose::kNobodys;
  if (file.ends_with("/contextlib.py")) return Whose::kNobodys;
  if (file.find(kTriton) != std::string_view::npos) return Whose::kNobodys;
  const std::size_t torch = file.find(kTorch);
  if (torch == std::string_view::npos) {
    return is_inductors(file) ? Whose::kNobodys : Whose::kPrograms;
  }
  const std::string_view within = file.substr(torch + kTorch.size());
  const bool passes_on = std::ranges::find(kPassOn, within) != kPassOn.end();
  const bool compiles = std::ranges::any_of(
      kCompiler, [&](std::string_view folder) { return within.starts_with(folder); });
  return passes_on || compiles ? Whose::kNobodys : Whose::kTorchs;
}

}  // namespace ferry::vgpu
