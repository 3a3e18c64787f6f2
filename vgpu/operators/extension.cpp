#include "vgpu/operators/extension.h"

#include "vgpu/operators/extensions.h"
#include "vgpu/operators/host_views.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {

using c10::DispatchKey;

namespace {

void check_supported(const Operator& op, const torch::jit::Stack& stack) {
  TORCH_CHECK(!op.returns_view, op.name, ": the virtual GPU runs no operator of an extension that ",
              "returns a view, unless its own CUDA kernel makes it");
  for (std::size_t i = 0; i < op.arguments; ++i) {
    if (!op.writes[i]) continue;
    each_tensor(torch::jit::peek(stack, i, op.arguments), [&](const at::Tensor& tensor) {
      TORCH_CHECK(tensor.is_cuda(), op.name, ": the virtual GPU runs no operator of an extension ",
                  "that writes CUDA tensors and others in one call");
    });
  }
}

}  // namespace

Extension::Extension(const c10::OperatorHandle& handle)
    : handle_(handle),
      name_(toString(handle.operator_name())),
      arguments_(handle.schema().arguments().size()) {}

void Extension::keep_own_kernel() {
  const std::lock_guard lock(mutex_);
  own_ = handle_.getComputedKernelForDispatchKey(DispatchKey::CUDA);
  refused_.clear();
}

void Extension::set_in_python() {
  const std::lock_guard lock(mutex_);
  by_.in_python = true;
  operators_.emplace_back(handle_, by_);
}

void Extension::set_stand_in(const c10::OperatorHandle& by) {
  const std::lock_guard lock(mutex_);
  by_.stand_in = by;
  operators_.emplace_back(handle_, by_);
}

const Operator& Extension::current() {
  const std::lock_guard lock(mutex_);
  const bool has_meta = handle_.hasKernelForDispatchKey(DispatchKey::Meta);
  if (operators_.empty() || operators_.back().has_meta != has_meta) {
    operators_.emplace_back(handle_, by_);
  }
  if (by_.stand_in) ++by_stand_in_;
  return operators_.back();
}

void Extension::call(c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Operator& op = current();
  if (!op.by.stand_in && own_computes(keys, stack)) return;
  check_supported(op, *stack);
  if (!op.can_compute() && (!op.has_meta || values() == KernelValues::kComputed)) refuse(op);
  const AtPlace at_place;
  run_queued(op, stack);
  const std::lock_guard lock(mutex_);
  if (!op.by.stand_in && !own_ && op.can_compute()) ++without_cuda_kernel_;
}

void Extension::refuse(const Operator& op) const {
  const std::string why =
      own_ ? "the virtual GPU runs no compiled kernel (" + refused_ + "), and the operator has no"
           : "the operator has neither a CUDA kernel nor a";
  note_refusal(name_ + (own_ ? " (" + refused_ + ")" : std::string()));
  TORCH_CHECK(false, name_, ": ", why, " CPU kernel; torch_ferry.virtual.stand_in(\"", name_,
              "\", function) gives it values, and --no-values ",
              op.has_meta ? "runs it without" : "needs its fake implementation (register_fake)");
}

// Returns whether the operator's own kernel computed. If not, the stack is as before.
bool Extension::own_computes(c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  {
    const std::lock_guard lock(mutex_);
    if (!own_ || !refused_.empty()) return false;
  }
  const auto arguments = torch::jit::last(*stack, arguments_).vec();
  const std::size_t below = stack->size() - arguments.size();
  const std::string refused = attempt(keys, stack);
  if (refused.empty()) return true;
  stack->resize(below);
  stack->insert(stack->end(), arguments.begin(), arguments.end());
  const std::lock_guard lock(mutex_);
  refused_ = refused;
  return false;
}

// Returns the name of the compiled kernel that was rejected, or "" if none was. Throws any other
// error that the operator's own kernel throws.
std::string Extension::attempt(c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
  const Attempt attempt;
  try {
    own_->callBoxed(handle_, keys, stack);
  } catch (...) {
    if (attempt.refused().empty()) throw;
    forget_error();
  }
  return attempt.refused();
}

std::int64_t Extension::calls_by_stand_in() const {
  const std::lock_guard lock(mutex_);
  return by_stand_in_;
}

std::int64_t Extension::calls_without_cuda_kernel() const {
  const std::lock_guard lock(mutex_);
  return without_cuda_kernel_;
}

}  // namespace ferry::vgpu
