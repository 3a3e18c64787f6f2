#include "real/python/call.h"

#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/python_variable.h>

#include <stdexcept>

#include "real/autograd/engine.h"
#include "real/python/errors.h"
#include "real/python/pair.h"

namespace ferry::real::python {
namespace {

py::object to_python(at::Tensor tensor) {
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(tensor)));
}

}  // namespace

c10::SafePyObject keep(const py::object& object) {
  return {py::object(object).release().ptr(), getPyInterpreter()};
}

py::object borrow(const c10::SafePyObject& kept) {
  return py::reinterpret_borrow<py::object>(kept.ptr(getPyInterpreter()));
}

Call::Call(const py::object& function, const py::tuple& arguments, const py::dict& keywords)
    : function_(keep(function)), arguments_(keep(arguments)), keywords_(keep(keywords)) {
  py::tuple others(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const py::object argument = arguments[i];
    const bool is_tensor = THPVariable_Check(argument.ptr());
    if (is_tensor) {
      tensors_.push_back(THPVariable_Unpack(argument.ptr()));
      places_.push_back(i);
    }
    others[i] = is_tensor ? py::none() : argument;
  }
  py::dict named;
  for (const auto& [name, value] : keywords) {
    if (THPVariable_Check(value.ptr())) {
      tensors_.push_back(THPVariable_Unpack(value.ptr()));
      names_.push_back(keep(py::reinterpret_borrow<py::object>(name)));
    } else {
      named[name] = value;
    }
  }
  const c10::SafePyObject arguments_left = keep(others);
  const c10::SafePyObject keywords_left = keep(named);
  arguments_ = arguments_left;
  keywords_ = keywords_left;
}

c10::SafePyObject Call::operator()(Tensors tensors) const {
  const py::gil_scoped_acquire gil;
  const auto others = py::reinterpret_borrow<py::tuple>(borrow(arguments_));
  const auto named = py::reinterpret_steal<py::dict>(PyDict_Copy(borrow(keywords_).ptr()));
  py::tuple arguments(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) arguments[i] = others[i];
  for (std::size_t i = 0; i < places_.size(); ++i) {
    arguments[places_[i]] = to_python(std::move(tensors[i]));
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    named[borrow(names_[i])] = to_python(std::move(tensors[places_.size() + i]));
  }
  tensors.clear();
  const std::size_t height = other_hooks_depth();
  const auto result = py::reinterpret_steal<py::object>(
      PyObject_Call(borrow(function_).ptr(), arguments.ptr(), named.ptr()));
  const bool closed = cut_hooks(height);
  if (!result) throw_from_python();
  if (!closed) {
    throw std::runtime_error(
        "torch_ferry: the checkpointed function returned with saved-tensor hooks open that it "
        "opened; close them within");
  }
  return keep(result);
}

}  // namespace ferry::real::python
