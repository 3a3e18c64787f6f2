#include "vgpu/operators/extensions.h"

#include <ATen/core/boxing/OperatorKernel.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/operators/operator.h"
#include "vgpu/operators/replacing.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

std::function<void()> forget_error_of_program;

// Takes the place of the CUDA kernel that an operator has.
class ExtensionKernel final : public c10::OperatorKernel {
 public:
  explicit ExtensionKernel(const c10::OperatorHandle& handle)
      : operator_(handle), own_(handle.getComputedKernelForDispatchKey(c10::DispatchKey::CUDA)) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    if (!is_refused_ && own_computes(handle, keys, stack)) return;
    is_refused_ = true;
    const AtPlace at_place;
    run_queued(operator_, stack);
  }

 private:
  // Returns whether the operator's own kernel computed. If not, the stack is as before.
  bool own_computes(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) const {
    const auto arguments = torch::jit::last(*stack, operator_.arguments).vec();
    const std::size_t below = stack->size() - arguments.size();
    const std::string refused = attempt(handle, keys, stack);
    if (refused.empty()) return true;
    if (!operator_.op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
      note_refusal(operator_.name + " (" + refused + ")");
      TORCH_CHECK(false, operator_.name, ": the virtual GPU runs no compiled kernel (", refused,
                  "), and the operator has no CPU kernel");
    }
    stack->resize(below);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    return false;
  }

  // Returns the name of the compiled kernel that was rejected, or "" if none was. Throws any other
  // error that the operator's own kernel throws.
  std::string attempt(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) const {
    const Attempt attempt;
    try {
      own_.callBoxed(handle, keys, stack);
    } catch (...) {
      if (attempt.refused().empty()) throw;
      forget_error_of_program();
    }
    return attempt.refused();
  }

  const Operator operator_;
  const c10::SafeKernelFunction own_;
  std::atomic<bool> is_refused_ = false;
};

// The operators that have no CUDA kernel yet.
struct Unmet {
  std::mutex mutex;
  std::vector<c10::OperatorHandle> operators;
  std::atomic<bool> are_new = false;
};
// Never destroyed, because libraries come and go until the process ends.
Unmet& unmet = *new Unmet;

// The dispatcher calls it under its own lock.
class NewOperators final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(unmet.mutex);
    unmet.operators.push_back(op);
    unmet.are_new = true;
  }
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(unmet.mutex);
    std::erase_if(unmet.operators, [&](const c10::OperatorHandle& each) { return each == op; });
  }
};

std::vector<c10::OperatorHandle> take_those_with_kernels() {
  const std::lock_guard lock(unmet.mutex);
  unmet.are_new = false;
  const auto with = std::stable_partition(
      unmet.operators.begin(), unmet.operators.end(), [](const c10::OperatorHandle& op) {
        return !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
      });
  std::vector<c10::OperatorHandle> taken(with, unmet.operators.end());
  unmet.operators.erase(with, unmet.operators.end());
  return taken;
}

}  // namespace

void watch_extensions(std::function<void()> forget_error) {
  forget_error_of_program = std::move(forget_error);
  static auto* const listening = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<NewOperators>()));
  static_cast<void>(listening);
  const std::lock_guard lock(unmet.mutex);
  unmet.operators.clear();  // LibTorch's own operators, which come first
  unmet.are_new = false;
}

void meet_extensions() {
  if (unmet.are_new.load(std::memory_order_relaxed)) look_for_extensions();
}

void look_for_extensions() {
  for (const c10::OperatorHandle& op : take_those_with_kernels()) {
    replace_kernel(op,
                   torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ExtensionKernel>(op)));
  }
}

}  // namespace ferry::vgpu
