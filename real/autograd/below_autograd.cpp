#include "real/autograd/below_autograd.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <utility>

#include "real/autograd/slots.h"

namespace ferry::real {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

std::atomic<RunOp>& observer() {
  static std::atomic<RunOp> observer = nullptr;
  return observer;
}

struct OpsSlot final : c10::DebugInfoBase {
  explicit OpsSlot(std::shared_ptr<OpScope> of) : scope(std::move(of)) {}
  const std::shared_ptr<OpScope> scope;
};

struct Entered {
  explicit Entered(std::shared_ptr<OpScope> scope)
      : slot(kOpsSlot, std::make_shared<OpsSlot>(std::move(scope))), key(kBelowAutograd) {}
  const c10::DebugInfoGuard slot;
  const c10::impl::IncludeDispatchKeyGuard key;
};

void run_under(OpScope* scope, const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  if (scope) return scope->run(op, keys, stack);
  const RunOp observe = observer();
  observe ? observe(op, keys, stack) : run_below(op, keys, stack);
}

void run_fallback(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  run_under(OpScope::current().get(), op, keys, stack);
}

}  // namespace

void run_below(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inside(kBelowAutograd);
  op.redispatchBoxed(keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kBelowAutograd), stack);
}

void install_below_autograd() {
  // Never destroyed, because ops run until the process ends. It is volatile, because otherwise the
  // compiler removes a pointer that nobody reads, and a leak checker reports the object.
  static const torch::Library* volatile const library = [] {
    auto* const made =
        new torch::Library(torch::Library::IMPL, "_", kBelowAutograd, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
    return made;
  }();
  static_cast<void>(library);
}

std::shared_ptr<OpScope> OpScope::current() {
  const auto* const slot = static_cast<const OpsSlot*>(c10::ThreadLocalDebugInfo::get(kOpsSlot));
  return slot ? slot->scope : nullptr;
}

CheckpointScope OpScope::enter(std::shared_ptr<OpScope> scope) {
  return std::make_shared<Entered>(std::move(scope));
}

void OpScope::run_outside(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) const {
  run_under(outer_.get(), op, keys, stack);
}

void observe_below_autograd(RunOp run) {
  install_below_autograd();
  observer() = run;
}

}  // namespace ferry::real
