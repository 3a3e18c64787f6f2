#include "vgpu/operators/unfilled.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "vgpu/operators/host_views.h"
#include "vgpu/operators/unfilled_storages.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

using torch::jit::Stack;

// Their result does not depend on the first argument's values.
constexpr std::array<std::string_view, 10> kFill = {
    "aten::normal_",      "aten::uniform_",    "aten::exponential_",     "aten::log_normal_",
    "aten::cauchy_",      "aten::geometric_",  "aten::bernoulli_.float", "aten::zero_",
    "aten::fill_.Scalar", "aten::fill_.Tensor"};
// These change their first argument in place, from its own values.
constexpr std::array<std::string_view, 8> kChange = {
    "aten::mul_.Tensor", "aten::add_.Tensor", "aten::sub_.Tensor", "aten::div_.Tensor",
    "aten::clamp_",      "aten::clamp_min_",  "aten::clamp_max_",  "aten::erfinv_"};

thread_local bool fills = false;

bool is_large(const at::Tensor& tensor) {
  return !fills && tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         tensor.has_storage() && tensor.is_floating_point() && tensor.nbytes() > kFewBytes;
}

bool nothing_to_fill(const at::Tensor& self) {
  if (!is_large(self)) return false;
  unfilled().add(self);
  return true;
}

bool nothing_to_change(const at::Tensor& self) { return is_large(self) && is_unfilled(self); }

bool nothing_to_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!is_large(to) || !is_unfilled(from)) return false;
  unfilled().add(to);
  return true;
}

// Takes the place of a CPU kernel that returns its first argument.
class Sparing final : public c10::OperatorKernel {
 public:
  using Spares = bool (*)(const Stack& stack, std::size_t arguments);

  Sparing(const c10::OperatorHandle& op, Spares spares)
      : kernel_(op.getComputedKernelForDispatchKey(c10::DispatchKey::CPU)), spares_(spares) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const std::size_t arguments = op.schema().arguments().size();
    if (!spares_(*stack, arguments)) return kernel_.callBoxed(op, keys, stack);
    at::Tensor self = torch::jit::peek(*stack, 0, arguments).toTensor();
    torch::jit::drop(*stack, arguments);
    stack->emplace_back(std::move(self));
  }

 private:
  c10::SafeKernelFunction kernel_;
  Spares spares_;
};

void spare(torch::Library& library, std::string_view name, Sparing::Spares spares) {
  const std::size_t point = name.find('.');
  const std::string overload(point == std::string_view::npos ? "" : name.substr(point + 1));
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      std::string(name.substr(0, point)).c_str(), overload.c_str());
  library.impl(std::string(name).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Sparing>(op, spares)));
}

const at::Tensor& argument(const Stack& stack, std::size_t index, std::size_t arguments) {
  return torch::jit::peek(stack, index, arguments).toTensor();
}

// Kernels' bodies call it, too, which must not ask the runtime. Their tensors are filled.
at::Scalar number_of(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_unfilled(tensor) || values() != KernelValues::kRefused,
      "the program reads a number (item, bool, float) that depends on a large CPU tensor which is "
      "not filled (--no-values): with --zeros it is what is there");
  return at::native::_local_scalar_dense_cpu(tensor);
}

bool has_unfilled(c10::ArrayRef<const c10::IValue> values) {
  bool found = false;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) { found = found || is_unfilled(tensor); });
  }
  return found;
}

struct OfUnfilled final : at::ObserverContext {};

// If an operator reads an unfilled tensor, its results depend on it.
std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& function) {
  if (unfilled().empty() || !has_unfilled(function.inputs())) return nullptr;
  return std::make_unique<OfUnfilled>();
}

void ends(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  for (const c10::IValue& value : function.outputs()) {
    each_tensor(value, [](const at::Tensor& tensor) {
      if (!tensor.is_cpu() || !tensor.has_storage() || tensor.layout() != at::kStrided) return;
      unfilled().add(tensor);
      note_unknown(bytes_of(tensor));  // it may be page-locked
    });
  }
}

}  // namespace

bool is_unfilled(const at::Tensor& tensor) { return unfilled().has(tensor); }

void fill_all(bool all) { fills = all; }

void leave_unfilled() {
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  for (const std::string_view name : kFill) {
    spare(*library, name,
          [](const Stack& stack, std::size_t n) { return nothing_to_fill(argument(stack, 0, n)); });
  }
  for (const std::string_view name : kChange) {
    spare(*library, name, [](const Stack& stack, std::size_t n) {
      return nothing_to_change(argument(stack, 0, n));
    });
  }
  spare(*library, "aten::copy_", [](const Stack& stack, std::size_t n) {
    return nothing_to_copy(argument(stack, 0, n), argument(stack, 1, n));
  });
  library->impl("_local_scalar_dense", number_of);
  at::addGlobalCallback(at::RecordFunctionCallback(begins, ends)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

}  // namespace ferry::vgpu
