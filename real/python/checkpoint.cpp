#include "real/python/checkpoint.h"

#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include "ferry/checkpoint.h"
#include "ferry/selective.h"
#include "real/python/call.h"
#include "real/python/errors.h"
#include "real/python/gil.h"

namespace ferry::real::python {
namespace {

using checkpoint_impl::Map;

// Enters a Python context manager. The returned scope exits it when it is destroyed.
CheckpointScope enter(const c10::SafePyObject& manager) {
  const py::gil_scoped_acquire gil;
  borrow(manager).attr("__enter__")();
  return {
      new c10::SafePyObject(manager), [](void* kept) {
        const std::unique_ptr<c10::SafePyObject> entered(static_cast<c10::SafePyObject*>(kept));
        const py::gil_scoped_acquire locked;
        try {
          borrow(*entered).attr("__exit__")(py::none(), py::none(), py::none());
        } catch (py::error_already_set& error) {
          error.discard_as_unraisable("torch_ferry.checkpoint: the end of a context_fn's scope");
        }
      }};
}

// Calls Python. An error is rethrown in a form that autograd passes on.
template <class Function>
auto in_python(Function function) {
  try {
    return function();
  } catch (py::error_already_set& error) {
    const py::gil_scoped_acquire gil;
    error.restore();
    throw_from_python();
  }
}

std::function<CheckpointContexts()> contexts_of(const py::object& context_fn) {
  return [kept = keep(context_fn)] {
    return in_python([&] {
      const py::gil_scoped_acquire gil;
      const py::tuple two = borrow(kept)();
      if (two.size() != 2) throw py::value_error("context_fn: expected two context managers");
      const auto scope = [](const py::object& manager) -> std::function<CheckpointScope()> {
        return [manager = keep(manager)] { return in_python([&] { return enter(manager); }); };
      };
      return CheckpointContexts{scope(two[0]), scope(two[1])};
    });
  };
}

CheckpointPolicy policy_named(const std::string& name) {
  if (name == "save") return CheckpointPolicy::kMustSave;
  if (name == "offload") return CheckpointPolicy::kMustOffload;
  if (name == "recompute") return CheckpointPolicy::kPreferRecompute;
  throw std::invalid_argument(
      "torch_ferry.checkpoint: policy: expected \"save\", \"offload\" or \"recompute\", got \"" +
      name + "\"");
}

// A map from names of ops to what happens to their results, or a function that decides.
using Policy = std::variant<std::map<std::string, std::string>, py::function>;

std::function<CheckpointContexts()> selective_of(const Policy& policy) {
  if (const auto* const function = std::get_if<py::function>(&policy)) {
    return selective(SelectivePolicy([kept = keep(*function)](const SelectiveCall& call) {
      return in_python([&] {
        const py::gil_scoped_acquire gil;
        return policy_named(py::cast<std::string>(borrow(kept)(call.op, call.index)));
      });
    }));
  }
  std::map<std::string, CheckpointPolicy> by_op;
  std::vector<std::string> ops;
  for (const auto& [op, name] : std::get<0>(policy)) {
    by_op[op] = policy_named(name);
    ops.push_back(op);
  }
  static_cast<void>(selective(ops));  // throws for names that no op has
  return selective(SelectivePolicy([by_op](const SelectiveCall& call) {
    const auto found = by_op.find(call.op);
    return found == by_op.end() ? CheckpointPolicy::kPreferRecompute : found->second;
  }));
}

DeterminismCheck check_of(const std::string& name) {
  if (name == "none") return DeterminismCheck::kNone;
  if (name == "default") return DeterminismCheck::kDefault;
  throw std::invalid_argument("determinism_check: expected \"default\" or \"none\", got \"" + name +
                              "\"");
}

struct CheckpointArguments {
  bool preserve_rng_state;
  std::string determinism_check;
  bool debug;
  bool early_stop;
  py::object context_fn;
  std::optional<Policy> policy;
};

CheckpointOptions to_core(const CheckpointArguments& given) {
  CheckpointOptions options;
  options.preserve_rng_state(given.preserve_rng_state).debug(given.debug);
  options.early_stop(given.early_stop);
  options.determinism_check(check_of(given.determinism_check));
  if (given.policy && !given.context_fn.is_none()) {
    throw std::invalid_argument("torch_ferry.checkpoint: expected a policy or a context_fn");
  }
  if (given.policy) options.context_fn(selective_of(*given.policy));
  if (!given.context_fn.is_none()) options.context_fn(contexts_of(given.context_fn));
  return options;
}

py::object checkpoint(const py::object& function, const py::tuple& arguments,
                      const py::dict& keywords, const CheckpointArguments& given) {
  const CheckpointOptions options = to_core(given);
  const auto call = std::make_shared<Call>(function, arguments, keywords);
  std::optional<c10::SafePyObject> result;
  {
    const GilReleased released;
    checkpoint_impl::run(
        options, call->take_tensors(), [call](Tensors tensors) { (*call)(std::move(tensors)); },
        [&](Tensors tensors) { result.emplace((*call)(std::move(tensors))); });
  }
  return borrow(*result);
}

// The tensors in what a function returned: one tensor, or those in a sequence.
class Outputs {
 public:
  // Needs the lock.
  static Tensors tensors(const py::object& returned) {
    if (THPVariable_Check(returned.ptr())) return {THPVariable_Unpack(returned.ptr())};
    Tensors tensors;
    if (py::isinstance<py::tuple>(returned) || py::isinstance<py::list>(returned)) {
      for (const py::handle& each : returned) {
        if (THPVariable_Check(each.ptr())) tensors.push_back(THPVariable_Unpack(each.ptr()));
      }
    }
    return tensors;
  }
  // Returns `returned` with these tensors instead of its own.
  static py::object with(const py::object& returned, Tensors tensors) {
    std::size_t next = 0;
    const auto other = [&](const py::handle& each) {
      if (!THPVariable_Check(each.ptr())) return py::reinterpret_borrow<py::object>(each);
      return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(tensors[next++])));
    };
    if (THPVariable_Check(returned.ptr())) return other(returned);
    if (tensors.empty()) return returned;
    py::list all;
    for (const py::handle& each : returned) all.append(other(each));
    return py::isinstance<py::tuple>(returned) ? py::object(py::tuple(all)) : py::object(all);
  }
};

py::object checkpoint_reentrant(const py::object& function, const py::tuple& arguments,
                                const py::dict& keywords, bool preserve_rng_state,
                                const std::string& determinism_check) {
  CheckpointOptions options;
  options.reentrant(true)
      .preserve_rng_state(preserve_rng_state)
      .determinism_check(check_of(determinism_check));
  const auto call = std::make_shared<Call>(function, arguments, keywords);
  const auto first = std::make_shared<std::optional<c10::SafePyObject>>();
  const Map map = [call, weak = std::weak_ptr(first)](Tensors tensors) {
    c10::SafePyObject returned = (*call)(std::move(tensors));
    const py::gil_scoped_acquire gil;
    Tensors outputs = Outputs::tensors(borrow(returned));
    if (const auto kept = weak.lock()) kept->emplace(std::move(returned));
    return outputs;
  };
  Tensors outputs;
  {
    const GilReleased released;
    outputs =
        checkpoint_impl::run_reentrant(options, call->take_tensors(), map, &rethrow_to_python);
  }
  return Outputs::with(borrow(**first), std::move(outputs));
}

void add_checkpoint_statistics(py::module_& module) {
  using S = CheckpointStatistics;
  py::class_<S> counts(module, "CheckpointStatistics",
                       "Counts of all checkpoints in this process.");
  counts.def_readonly("segments", &S::segments)
      .def_readonly("recomputes", &S::recomputes)
      .def_readonly("stopped_early", &S::stopped_early)
      .def_readonly("saved", &S::saved)
      .def_readonly("kept", &S::kept)
      .def_readonly("passed_on", &S::passed_on)
      .def_readonly("alive", &S::alive);
  counts.def("__repr__", [](const S& self) {
    return std::to_string(self.segments) +
           " checkpointed calls: " + std::to_string(self.recomputes) + " recomputes (" +
           std::to_string(self.stopped_early) + " of them stopped early), " +
           std::to_string(self.saved) + " tensors recomputed, " + std::to_string(self.kept) +
           " kept, " + std::to_string(self.passed_on) + " passed on; " +
           std::to_string(self.alive) + " alive";
  });
  module.def("checkpoint_statistics", &checkpoint_statistics);
}

}  // namespace

void add_checkpoint(py::module_& module) {
  add_checkpoint_statistics(module);
  module.def("checkpoint", [](const py::object& function, const py::tuple& arguments,
                              const py::dict& keywords, bool preserve_rng_state,
                              const std::string& determinism_check, bool debug, bool early_stop,
                              const py::object& context_fn, const std::optional<Policy>& policy) {
    return checkpoint(
        function, arguments, keywords,
        {preserve_rng_state, determinism_check, debug, early_stop, context_fn, policy});
  });
  module.def("checkpoint_reentrant", &checkpoint_reentrant);
  module.def("is_checkpointing", &is_checkpointing);
  module.def("is_recomputing", &is_recomputing);
}

}  // namespace ferry::real::python
