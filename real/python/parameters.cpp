#include "real/python/parameters.h"

#include <torch/csrc/autograd/python_variable.h>

namespace ferry::real::python {
namespace {

PyTypeObject* parameter_class = nullptr;

template <class Slot>
const PyObject* object_in(const Slot& slot) {
  if constexpr (requires { slot.load_pyobj(); }) {
    return slot.load_pyobj();
  } else {  // older versions
    return slot._unchecked_untagged_pyobj();
  }
}

// It needs no interpreter lock: the object lives as long as the tensor, and the bases of its class
// do not change.
bool is_parameter(const at::Tensor& tensor) {
  const PyObject* const object = object_in(*tensor.unsafeGetTensorImpl()->pyobj_slot());
  return object && PyType_IsSubtype(Py_TYPE(object), parameter_class);
}

}  // namespace

void prepare_parameters() {
  const py::object found = py::module_::import("torch.nn").attr("Parameter");
  parameter_class = reinterpret_cast<PyTypeObject*>(py::object(found).release().ptr());
}

std::unique_ptr<Saved<at::Tensor>> ExemptParameters::pack(const at::Tensor& tensor) {
  if (tensor.defined()) {
    if (is_parameter(tensor)) {
      meet(tensor);
    } else if (tensor.is_view()) {
      const at::Tensor base(tensor._base());
      if (is_parameter(base)) meet(base);
    }
  }
  return session_->hooks()->pack(tensor);
}

void ExemptParameters::meet(const at::Tensor& parameter) {
  const std::lock_guard lock(mutex_);
  const bool added =
      met_.try_emplace(parameter.unsafeGetTensorImpl(), parameter.getIntrusivePtr()).second;
  if (!added) return;
  session_->exempt(parameter);
  if (met_.size() < look_at_) return;
  std::erase_if(met_, [](const auto& known) { return known.second.expired(); });
  look_at_ = 2 * met_.size() + 256;
}

}  // namespace ferry::real::python
