#include "ferry/hooks.h"

#include <optional>

#include "real/api/device_offloaders.h"
#include "real/api/planned.h"
#include "real/autograd/hooks_slot.h"
#include "real/autograd/thread_end.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_error.h"
#include "real/tensors/torch_tensors.h"
#include "shared/checkpoint/hooks.h"
#include "shared/seam/hooks.h"

namespace ferry::hooks_impl {
namespace {

using real::TorchAutograd;
using real::TorchTensors;

// The result of the user's pack, and the version of the tensor at that time.
class CheckedSave final : public Saved<at::Tensor> {
 public:
  CheckedSave(std::unique_ptr<Packed> packed, const at::Tensor& tensor)
      : packed_(std::move(packed)),
        version_(TorchTensors::version(tensor)),
        at_pack_(TorchTensors::read(version_)) {}
  at::Tensor unpack() override {
    const std::uint64_t now = TorchTensors::read(version_);
    if (now != at_pack_) throw real::torch_error(ModifiedInPlace(now, at_pack_));
    return packed_->unpack();
  }

 private:
  std::unique_ptr<Packed> packed_;
  TorchTensors::Version version_;
  std::uint64_t at_pack_;
};

// Gives access to the private hooks of a saved variable, because LibTorch has no call to remove
// them.
std::unique_ptr<torch::autograd::SavedVariableHooks>& hooks_of(
    torch::autograd::SavedVariable& variable);
template <auto member>
struct Opened {
  friend std::unique_ptr<torch::autograd::SavedVariableHooks>& hooks_of(
      torch::autograd::SavedVariable& variable) {
    return variable.*member;
  }
};
template struct Opened<&torch::autograd::SavedVariable::hooks_>;

class UserPair final : public Hooks<at::Tensor> {
 public:
  explicit UserPair(Pack pack) : pack_(std::move(pack)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    // The tensor is detached: if a node kept its own output with its graph, it would never be
    // freed.
    return std::make_unique<CheckedSave>(pack_(TorchTensors::detach(tensor)), tensor);
  }

 private:
  Pack pack_;
};

}  // namespace

void register_hooks(torch::autograd::SavedVariable& variable, Pack pack) {
  auto hooks = std::make_unique<real::SavedByPair>(std::make_shared<UserPair>(std::move(pack)));
  const auto* const ours = hooks.get();
  try {
    variable.register_hooks(std::move(hooks));
  } catch (...) {
    // LibTorch now holds hooks that have packed nothing, and also the tensor. So remove the hooks,
    // unless they are an earlier pair: LibTorch rejects a second one.
    std::unique_ptr<torch::autograd::SavedVariableHooks>& held = hooks_of(variable);
    if (held.get() == ours) held.reset();
    throw;
  }
}

struct Frame::State {
  std::optional<HooksGuard<TorchAutograd>> pair;
  std::optional<NoHooksGuard<TorchAutograd>> none;
  std::optional<DisableHooksGuard<TorchAutograd>> disabled;
};

Frame::Frame(Pack pack) : state_(std::make_unique<State>()) {
  state_->pair.emplace(TorchAutograd(), std::make_shared<UserPair>(std::move(pack)));
}
Frame::Frame() : state_(std::make_unique<State>()) { state_->none.emplace(TorchAutograd()); }
Frame::Frame(std::string message) : state_(std::make_unique<State>()) {
  state_->disabled.emplace(TorchAutograd(), std::move(message));
}
Frame::~Frame() { real::leave_at_thread_end(state_); }

}  // namespace ferry::hooks_impl

namespace ferry {
namespace {

template <class Kind>
bool is(const Hooks<at::Tensor>* pair) {
  return dynamic_cast<const Kind*>(pair) != nullptr;
}

}  // namespace

HooksInForce saved_tensor_hooks_in_force() {
  const HookStack<at::Tensor> stack = real::TorchAutograd().hooks();
  const Hooks<at::Tensor>* const pair =
      stack.top && !stack.disabled ? stack.top->pair.get() : nullptr;
  if (!pair) return HooksInForce::kNone;
  if (is<hooks_impl::UserPair>(pair)) return HooksInForce::kPair;
  const bool offloads = is<real::DeviceOffloaders>(pair) || is<real::PlannedHooks>(pair);
  if (offloads) return HooksInForce::kOffload;
  if (is<CheckpointPair<at::Tensor>>(pair)) return HooksInForce::kCheckpoint;
  return HooksInForce::kOther;
}

}  // namespace ferry
