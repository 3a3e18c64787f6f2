#include "sim/peak/stack_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace ferry::peak {
namespace {

constexpr std::string_view kPackages = "-packages/";
constexpr std::string_view kTorch = "-packages/torch/";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Python names files of code without a file like "<stdin>".
bool is_python(const MemoryFrame& frame) {
  return frame.file.ends_with(".py") || frame.file.starts_with('<');
}

// True if the frame belongs to the interpreter or to the launcher of `ferry run`.
bool is_nobodys(const MemoryFrame& frame) {
  return frame.file.starts_with("<frozen ") || frame.file.ends_with("/runpy.py") ||
         frame.file.ends_with("/vgpu/launch.py") || contains(frame.file, "/vgpu/ferry_");
}

bool is_torchs(const MemoryFrame& frame) { return contains(frame.file, kTorch); }

// What one frame says about the time of the request.
enum class Hint : std::uint8_t { kNone, kModule, kMoved, kBackward, kRecompute, kOptimizer };

// The hint of a whole stack. The innermost frame that hints decides, because a step of an optimizer
// may call the model (Lightning's closures). But a module that backward calls is no forward.
class Hints {
 public:
  void add(Hint hint) {
    if (hint == Hint::kNone) return;
    if (first_ == Hint::kNone) first_ = hint;
    if (hint == Hint::kBackward || hint == Hint::kRecompute) backward_ = std::max(backward_, hint);
  }
  Hint all() const {
    return first_ == Hint::kModule && backward_ != Hint::kNone ? backward_ : first_;
  }

 private:
  Hint first_ = Hint::kNone;
  Hint backward_ = Hint::kNone;
};

Hint hint_of(const MemoryFrame& frame) {
  if (!is_python(frame)) {
    return frame.function.starts_with("torch::autograd::Engine::") ? Hint::kBackward : Hint::kNone;
  }
  const std::size_t torch = frame.file.find(kTorch);
  if (torch == std::string::npos) return Hint::kNone;
  const std::string_view file = std::string_view(frame.file).substr(torch + kTorch.size());
  if (file.starts_with("optim/")) return Hint::kOptimizer;
  if (file == "nn/modules/module.py") {
    if (frame.function == "_apply") return Hint::kMoved;
    return frame.function == "_call_impl" ? Hint::kModule : Hint::kNone;
  }
  if (file == "utils/checkpoint.py") {
    const bool again = frame.function == "recompute_fn" || frame.function == "unpack_hook" ||
                       frame.function == "backward";
    return again ? Hint::kRecompute : Hint::kNone;
  }
  return file == "autograd/__init__.py" || frame.function == "_engine_run_backward"
             ? Hint::kBackward
             : Hint::kNone;
}

// Returns "linear" for "at::_ops::linear::call(…)"; empty for other functions.
std::string_view operator_of(std::string_view function) {
  constexpr std::string_view kOps = "at::_ops::";
  if (!function.starts_with(kOps)) return {};
  function.remove_prefix(kOps.size());
  return function.substr(0, function.find("::"));
}

// Returns "GeluBackward0" for "torch::autograd::generated::GeluBackward0::apply(…)", and for
// "torch::autograd::generated::GeluBackward0_apply_functional(…)", which is the innermost frame of
// some builds.
std::string_view node_of(std::string_view function) {
  constexpr std::string_view kNodes = "torch::autograd::generated::";
  if (!function.starts_with(kNodes)) return {};
  function.remove_prefix(kNodes.size());
  const std::size_t end = std::min(function.find("::"), function.find("_apply_functional("));
  return function.substr(0, end);
}

// True if a file of PyTorch only passes a call on.
bool passes_on(const MemoryFrame& frame) {
  constexpr std::array<std::string_view, 5> kPassOn = {
      "torch/_ops.py", "torch/autograd/function.py", "torch/nn/modules/module.py",
      "torch/utils/_contextlib.py", "torch/_dynamo/eval_frame.py"};
  return std::any_of(kPassOn.begin(), kPassOn.end(),
                     [&](std::string_view file) { return frame.file.ends_with(file); });
}

// Returns "linear" for forward of nn/modules/linear.py, "cross_entropy" for that function of
// nn/functional.py, and "adam._init_group" for a function of another file.
std::string function_of_torch(const MemoryFrame& frame) {
  if (passes_on(frame)) return "";
  std::string_view file = frame.file;
  if (constexpr std::string_view kInit = "/__init__.py"; file.ends_with(kInit)) {
    file.remove_suffix(kInit.size());
  }
  file.remove_prefix(file.rfind('/') + 1);
  const std::string stem(file.substr(0, file.find('.')));
  if (contains(frame.file, "/nn/modules/") && frame.function == "forward") return stem;
  if (stem == "functional" || stem == "_tensor") return frame.function;
  return stem + "." + frame.function;
}

}  // namespace

std::string_view name(When when) {
  constexpr std::array<std::string_view, 7> kNames = {
      "forward", "backward", "recompute", "optimizer", "model moved", "program", "no frames"};
  return kNames[static_cast<std::size_t>(when)];
}

std::string_view short_path(std::string_view path) {
  if (const std::size_t packages = path.rfind(kPackages); packages != std::string_view::npos) {
    path.remove_prefix(packages + kPackages.size());
  } else if (const std::size_t last = path.rfind('/'); last != std::string_view::npos && last > 0) {
    const std::size_t before = path.rfind('/', last - 1);
    if (before != std::string_view::npos) path.remove_prefix(before + 1);
  }
  return path;
}

std::string StackWords::place() const {
  if (file.empty()) return "";
  return std::string(short_path(file)) + ":" + std::to_string(line) + " in " + function;
}

StackWords words_of(const MemorySnapshot& snapshot, StackId stack) {
  StackWords words;
  if (stack >= snapshot.stacks.size()) return words;
  Hints hints;
  bool any_python = false;
  std::string node, torchs;
  for (const std::uint32_t number : snapshot.stacks[stack]) {
    const MemoryFrame& frame = snapshot.frames[number];
    hints.add(hint_of(frame));
    if (!is_python(frame)) {
      // Between two Python frames only the innermost operators made the request.
      if (const auto op = operator_of(frame.function); !op.empty() && !any_python) words.what = op;
      if (node.empty()) node = node_of(frame.function);
      continue;
    }
    if (is_nobodys(frame)) continue;
    any_python = true;
    if (is_torchs(frame)) {
      if (torchs.empty() && words.file.empty()) torchs = function_of_torch(frame);
    } else if (words.file.empty()) {
      words.file = frame.file;
      words.line = frame.line;
      words.function = frame.function;
    }
  }
  if (words.what.empty()) words.what = torchs;
  if (!node.empty() && !any_python) words.what = node;
  constexpr std::array<When, 6> kWhen = {When::kProgram,  When::kForward,   When::kMoved,
                                         When::kBackward, When::kRecompute, When::kOptimizer};
  const bool understood = any_python || hints.all() != Hint::kNone;
  words.when = understood ? kWhen[static_cast<std::size_t>(hints.all())] : When::kNoFrames;
  return words;
}

}  // namespace ferry::peak
