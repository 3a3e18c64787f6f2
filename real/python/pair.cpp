#include "real/python/pair.h"

#include <ATen/SavedTensorHooks.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <stack>
#include <utility>

#include "real/autograd/engine.h"
#include "real/python/errors.h"
#include "real/python/fork.h"
#include "real/python/saved.h"

namespace ferry::real {
namespace python {
namespace {

using DefaultHooks = at::SavedTensorDefaultHooks;
using Entry = std::pair<c10::SafePyObject, c10::SafePyObject>;

const std::stack<Entry>& stack() { return DefaultHooks::get_tls_state().stack; }

// Returns the entries from the bottom up. std::stack itself gives access to its top only.
const std::deque<Entry>& entries() {
  struct Opened : std::stack<Entry> {
    static const std::deque<Entry>& of(const std::stack<Entry>& hidden) {
      return hidden.*&Opened::c;
    }
  };
  return Opened::of(stack());
}

PyObject* object_of(const c10::SafePyObject& held) { return held.ptr(getPyInterpreter()); }

// A C++ object inside a Python object.
template <class Content>
struct Owning {
  PyObject_HEAD Content content;

  static Content& of(PyObject* object) { return reinterpret_cast<Owning*>(object)->content; }
  static PyObject* make(PyTypeObject& type, Content content) {
    PyObject* const made = type.tp_alloc(&type, 0);
    if (!made) throw py::error_already_set();
    new (&of(made)) Content(std::move(content));
    return made;
  }
  static void destroy(PyObject* object) {
    of(object).~Content();
    Py_TYPE(object)->tp_free(object);
  }
  static PyTypeObject type(const char* name, const char* about) {
    PyTypeObject type{};
    type.ob_base.ob_base.ob_refcnt = 1;
    type.tp_name = name;
    type.tp_doc = about;
    type.tp_basicsize = sizeof(Owning);
    type.tp_dealloc = &destroy;
    type.tp_flags = Py_TPFLAGS_DEFAULT;
    return type;
  }
};

struct PairContent {
  HookStack<at::Tensor> hooks;
  std::uint64_t generation;
};
using Pair = Owning<PairContent>;

// The result of a pair that is called like a Python hook and packs.
struct PackedContent {
  std::unique_ptr<SavedInPython> saved;  // null if no hooks see the tensor
  at::Tensor tensor;
};
using Packed = Owning<PackedContent>;

PyTypeObject pair_type = Pair::type("torch_ferry._C.Pair", "A pair of Ferry's saved-tensor hooks.");
PyTypeObject packed_type = Packed::type("torch_ferry._C.Packed", "A tensor that Ferry packed.");

bool is_ours(const Entry& entry) { return Py_TYPE(object_of(entry.first)) == &pair_type; }
const PairContent& content_of(const Entry& entry) { return Pair::of(object_of(entry.first)); }

PyObject* pack(const HookStack<at::Tensor>& hooks, const at::Tensor& tensor) {
  const c10::AutoGradMode no_grad(false);
  PackedContent packed;
  if (hooks.top && hooks.top->pair) {
    packed.saved = std::make_unique<SavedInPython>(hooks.top->pair);
    packed.saved->call_pack_hook(tensor);
  } else {
    packed.tensor = tensor.detach();
  }
  return Packed::make(packed_type, std::move(packed));
}

PyObject* call(PyObject* self, PyObject* arguments, PyObject*) {
  HANDLE_TH_ERRORS
  PyObject* argument = nullptr;
  if (!PyArg_ParseTuple(arguments, "O", &argument)) return nullptr;
  if (Py_TYPE(argument) == &packed_type) {
    const PackedContent& packed = Packed::of(argument);
    return THPVariable_Wrap(packed.saved ? packed.saved->call_unpack_hook() : packed.tensor);
  }
  TORCH_CHECK_TYPE(THPVariable_Check(argument),
                   "torch_ferry: expected a tensor to pack, or what was packed");
  return pack(Pair::of(self).hooks, THPVariable_Unpack(argument));
  END_HANDLE_TH_ERRORS
}

// Python's own hooks, if they are around one of Ferry's checkpoints.
class PythonSaved final : public Saved<at::Tensor> {
 public:
  PythonSaved(c10::SafePyObject unpack, c10::SafePyObject packed)
      : unpack_(std::move(unpack)), packed_(std::move(packed)) {}
  at::Tensor unpack() override {
    const py::gil_scoped_acquire gil;
    const auto tensor = py::reinterpret_steal<py::object>(
        PyObject_CallOneArg(object_of(unpack_), object_of(packed_)));
    if (!tensor) throw_from_python();
    TORCH_CHECK_TYPE(THPVariable_Check(tensor.ptr()),
                     "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                     "type ",
                     Py_TYPE(tensor.ptr())->tp_name);
    return THPVariable_Unpack(tensor.ptr());
  }

 private:
  const c10::SafePyObject unpack_;
  const c10::SafePyObject packed_;
};

class PythonHooks final : public Hooks<at::Tensor> {
 public:
  explicit PythonHooks(Entry functions) : functions_(std::move(functions)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    const py::gil_scoped_acquire gil;
    const auto wrapped = py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
    PyObject* const packed = PyObject_CallOneArg(object_of(functions_.first), wrapped.ptr());
    if (!packed) throw_from_python();
    return std::make_unique<PythonSaved>(functions_.second,
                                         c10::SafePyObject(packed, getPyInterpreter()));
  }

 private:
  const Entry functions_;
};

}  // namespace

void prepare_pairs() {
  pair_type.tp_call = &call;
  for (PyTypeObject* const type : {&pair_type, &packed_type}) {
    if (PyType_Ready(type) < 0) throw py::error_already_set();
  }
}

PyObject* push_pair(HookStack<at::Tensor> hooks) {
  PyObject* const pair = Pair::make(pair_type, {std::move(hooks), process_generation()});
  const c10::SafePyObject held(pair, getPyInterpreter());
  DefaultHooks::lazy_initialize();
  DefaultHooks::push_hooks(held, held);
  return pair;
}

const HookStack<at::Tensor>* top_pair() {
  if (stack().empty() || !is_ours(stack().top())) return nullptr;
  static const HookStack<at::Tensor> none;
  const PairContent& pair = content_of(stack().top());
  return pair.generation == process_generation() ? &pair.hooks : &none;
}

Removed remove_pair(PyObject* pair) {
  const auto is_it = [pair](const Entry& entry) { return object_of(entry.first) == pair; };
  if (!stack().empty() && is_it(stack().top())) {
    DefaultHooks::pop_hooks();
    return Removed::kFromTop;
  }
  if (std::ranges::none_of(entries(), is_it)) return Removed::kWasGone;
  at::impl::SavedTensorDefaultHooksTLS others = DefaultHooks::get_tls_state();
  others.stack = {};
  for (const Entry& entry : entries()) {
    if (!is_it(entry)) others.stack.push(entry);
  }
  DefaultHooks::set_tls_state(others);
  return Removed::kFromBelow;
}

bool cut_hooks(std::size_t height) {
  const bool higher = stack().size() > height;
  while (stack().size() > height) DefaultHooks::pop_hooks();
  return !higher;
}

}  // namespace python

std::size_t other_hooks_depth() { return python::stack().size(); }

HookStack<at::Tensor> with_other_hooks(HookStack<at::Tensor> around) {
  if (const auto* const ours = python::top_pair()) return *ours;
  const auto& all = python::entries();
  const auto ours = std::find_if(all.rbegin(), all.rend(), python::is_ours);
  if (ours != all.rend()) around.checkpoint = python::content_of(*ours).hooks.checkpoint;
  around.top = std::make_shared<const HookFrame<at::Tensor>>(HookFrame<at::Tensor>{
      std::make_shared<python::PythonHooks>(all.back()), std::move(around.top)});
  return around;
}

}  // namespace ferry::real
