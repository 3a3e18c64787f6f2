#include "real/autograd/late_writes.h"

#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <utility>

namespace ferry::real {

// Shared with the save, because the graph may be gone before the tensor is packed.
struct LatePacks::Late {
  std::shared_ptr<Hooks<at::Tensor>> pair;
  at::Tensor tensor;
  std::unique_ptr<Saved<at::Tensor>> saved;
};

class LatePacks::Save final : public Saved<at::Tensor> {
 public:
  explicit Save(std::shared_ptr<Late> late) : late_(std::move(late)) {}
  at::Tensor unpack() override {
    TORCH_CHECK(late_->saved, "unpacked within the op that saves it");
    return late_->saved->unpack();
  }

 private:
  const std::shared_ptr<Late> late_;
};

thread_local LatePacks* LatePacks::current_ = nullptr;

std::unique_ptr<Saved<at::Tensor>> LatePacks::add(std::shared_ptr<Hooks<at::Tensor>> pair,
                                                  const at::Tensor& tensor) {
  late_.push_back(std::make_shared<Late>(Late{std::move(pair), tensor, nullptr}));
  return std::make_unique<Save>(late_.back());
}

void LatePacks::finish() {
  current_ = outer_;  // hooks may run such an op themselves
  const c10::AutoGradMode no_grad(false);
  for (const auto& late : late_) {
    const at::Tensor tensor = std::exchange(late->tensor, {});
    const auto version = tensor._version();
    late->saved = std::exchange(late->pair, nullptr)->pack(tensor);
    TORCH_CHECK(tensor._version() == version,
                "A saved tensor pack hook is modifying its input in place.");
  }
}

namespace {

void run_and_pack(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
  using c10::DispatchKeySet;
  LatePacks packs;
  op.redispatchBoxed(keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kLateWrites), stack);
  packs.finish();
}

struct Kernels {
  torch::Library others{torch::Library::IMPL, "_", kLateWrites, __FILE__, __LINE__};
  torch::Library late{torch::Library::IMPL, "aten", kLateWrites, __FILE__, __LINE__};

  Kernels() {
    others.fallback(torch::CppFunction::makeFallthrough());
    for (const char* const op : {"rrelu_with_noise", "rrelu_with_noise_"}) {
      late.impl(op, torch::CppFunction::makeFromBoxedFunction<&run_and_pack>());
    }
  }
};

}  // namespace

void install_late_writes() {
  // Never destroyed, because ops run until the process ends. It is volatile, because otherwise the
  // compiler removes a pointer that nobody reads, and a leak checker reports the object.
  static const Kernels* volatile const kernels = new Kernels;
  static_cast<void>(kernels);
}

}  // namespace ferry::real
