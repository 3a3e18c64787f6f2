// torch.utils.checkpoint.GraphExecGroup, for Ferry's checkpoints.
//
// PyTorch stores the group of a thread as a Python object. Ferry's group is an attribute of that
// object and dies with it; what was recomputed for the group is dropped then.

#include <c10/core/AutogradState.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <utility>

#include "real/autograd/engine.h"
#include "real/python/call.h"
#include "real/python/gil.h"
#include "shared/seam/checkpoint_context.h"

namespace ferry::real {
namespace {

constexpr const char* kAttribute = "_torch_ferry_group";

// Returns none if this version of PyTorch has no groups.
template <class State>
std::optional<c10::SafePyObject> group_of(const State& state) {
  if constexpr (requires { state.get_graph_exec_group(); }) {
    return state.get_graph_exec_group();
  } else {
    return std::nullopt;
  }
}

std::shared_ptr<ExecGroup> ours_of(const c10::SafePyObject& theirs) {
  using Kept = std::shared_ptr<ExecGroup>;
  const py::gil_scoped_acquire gil;
  const py::object object = python::borrow(theirs);
  if (!py::hasattr(object, kAttribute)) {
    object.attr(kAttribute) = py::capsule(new Kept(std::make_shared<ExecGroup>()), [](void* kept) {
      const python::GilReleased released;
      delete static_cast<Kept*>(kept);
    });
  }
  return *static_cast<Kept*>(py::capsule(object.attr(kAttribute)).get_pointer());
}

}  // namespace

void put_exec_group(HookStack<at::Tensor>& stack) {
  const auto theirs = group_of(c10::AutogradState::get_tls_state());
  std::shared_ptr<ExecGroup> group = theirs ? ours_of(*theirs) : nullptr;
  CheckpointContext context = checkpoint_context(stack);
  if (context.group == group) return;
  context.group = std::move(group);
  stack.checkpoint = std::make_shared<const CheckpointContext>(std::move(context));
}

}  // namespace ferry::real
