#include "vgpu/operators/extensions.h"

#include <ATen/core/boxing/OperatorKernel.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "vgpu/operators/extension.h"
#include "vgpu/operators/replacing.h"

namespace ferry::vgpu {
namespace {

std::function<void()> forget_error_of_program;

// Takes the place of a CUDA kernel that an operator has.
class ExtensionKernel final : public c10::OperatorKernel {
 public:
  explicit ExtensionKernel(Extension& extension) : extension_(extension) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    extension_.call(keys, stack);
  }

 private:
  Extension& extension_;
};

// The operators of extensions. An Extension is never destroyed (extension.h).
struct Registered {
  std::mutex mutex;
  std::vector<c10::OperatorHandle> without_kernel;  // those that have no CUDA kernel yet
  std::map<std::string, Extension*> extensions;     // null until it is needed
  std::vector<Extension*> all;
  std::atomic<bool> are_new = false;

  // The mutex must be locked.
  Extension& get(const c10::OperatorHandle& op) {
    Extension*& extension = extensions[toString(op.operator_name())];
    if (extension == nullptr) all.push_back(extension = new Extension(op));
    return *extension;
  }
};
// Never destroyed, because libraries come and go until the process ends.
Registered& registered = *new Registered;

// The dispatcher calls it under its own lock.
class NewOperators final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(registered.mutex);
    registered.without_kernel.push_back(op);
    registered.extensions[toString(op.operator_name())] = nullptr;
    registered.are_new = true;
  }
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(registered.mutex);
    std::erase_if(registered.without_kernel,
                  [&](const c10::OperatorHandle& each) { return each == op; });
    registered.extensions.erase(toString(op.operator_name()));
  }
};

std::vector<c10::OperatorHandle> take_those_with_kernels() {
  const std::lock_guard lock(registered.mutex);
  auto& operators = registered.without_kernel;
  registered.are_new = false;
  const auto with =
      std::stable_partition(operators.begin(), operators.end(), [](const c10::OperatorHandle& op) {
        return !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
      });
  std::vector<c10::OperatorHandle> taken(with, operators.end());
  operators.erase(with, operators.end());
  return taken;
}

Extension* find_extension(const c10::OperatorHandle& op) {
  const std::lock_guard lock(registered.mutex);
  const bool known = registered.extensions.contains(toString(op.operator_name()));
  return known ? &registered.get(op) : nullptr;
}

Extension& extension_of(const c10::OperatorHandle& op) {
  const std::lock_guard lock(registered.mutex);
  return registered.get(op);
}

std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  const std::size_t point = name.find('.');
  return c10::Dispatcher::singleton().findSchema(
      {name.substr(0, point), point == std::string::npos ? "" : name.substr(point + 1)});
}

// LibTorch calls it for each operator that has no CUDA kernel and no composite one.
void call_without_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  Extension* const extension = find_extension(op);
  // Without this function LibTorch's own operators would fail with these words, too.
  TORCH_CHECK_NOT_IMPLEMENTED(extension != nullptr, "Could not run '", op.operator_name(),
                              "' with arguments from the 'CUDA' backend: it has no CUDA kernel");
  extension->call(keys, stack);
}

void replace(const c10::OperatorHandle& op, Extension& extension) {
  replace_kernel(
      op, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ExtensionKernel>(extension)));
}

}  // namespace

void watch_extensions(std::function<void()> forget_error) {
  forget_error_of_program = std::move(forget_error);
  static auto* const listening = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<NewOperators>()));
  static_cast<void>(listening);
  {
    const std::lock_guard lock(registered.mutex);
    registered.without_kernel.clear();  // LibTorch's own operators, which come first
    registered.extensions.clear();
    registered.are_new = false;
  }
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&call_without_kernel>());
}

void forget_error() {
  if (forget_error_of_program) forget_error_of_program();
}

void meet_extensions() {
  if (registered.are_new.load(std::memory_order_relaxed)) look_for_extensions();
}

void look_for_extensions() {
  for (const c10::OperatorHandle& op : take_those_with_kernels()) {
    Extension& extension = extension_of(op);
    extension.keep_own_kernel();
    replace(op, extension);
  }
}

void note_python_kernel(const std::string& name) {
  if (const auto op = find_operator(name)) {
    if (Extension* const extension = find_extension(*op)) extension->set_in_python();
  }
}

void set_stand_in(const std::string& name, const std::string& by) {
  look_for_extensions();
  const auto op = find_operator(name);
  const auto stand_in = find_operator(by);
  TORCH_CHECK(op && stand_in, "no operator ", op ? by : name, " is registered");
  Extension& extension = extension_of(*op);
  extension.set_stand_in(*stand_in);
  // Also if it has no CUDA kernel: it may have a composite one. If it gets a CUDA kernel later,
  // look_for_extensions() replaces that.
  replace(*op, extension);
}

ExtensionCalls extension_calls() {
  const std::lock_guard lock(registered.mutex);
  ExtensionCalls calls;
  for (const Extension* const extension : registered.all) {
    const auto add = [&](std::map<std::string, std::int64_t>& to, std::int64_t count) {
      if (count > 0) to[extension->name()] += count;
    };
    add(calls.by_stand_in, extension->calls_by_stand_in());
    add(calls.without_cuda_kernel, extension->calls_without_cuda_kernel());
  }
  return calls;
}

}  // namespace ferry::vgpu
