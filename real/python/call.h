// A call of a Python function, stored without its tensor arguments. ferry::checkpoint keeps those
// itself, so that hooks may offload them, and passes them in each time it runs the function
// (checkpoint.cpp).
//
// Only tensors that are arguments themselves are taken out. Tensors in a list or dictionary stay
// inside the Python objects. keep() stores any Python object so that C++ may drop it without the
// interpreter's lock; borrow() returns the object.
#pragma once

#include <c10/core/SafePyObject.h>
#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace ferry::real::python {

using Tensors = std::vector<at::Tensor>;

// Keeps a Python object so that it may be dropped without the interpreter's lock.
c10::SafePyObject keep(const py::object& object);
py::object borrow(const c10::SafePyObject& kept);  // needs the lock

class Call {
 public:
  // Takes the tensors out of the arguments and keyword arguments.
  Call(const py::object& function, const py::tuple& arguments, const py::dict& keywords);

  Tensors take_tensors() { return std::move(tensors_); }

  // Calls the function, with the interpreter's lock. Throws what the function raises. If the
  // function leaves saved-tensor hooks open that it opened, it closes them and throws
  // std::runtime_error.
  c10::SafePyObject operator()(Tensors tensors) const;

 private:
  Tensors tensors_;  // those of places_, then those of names_
  std::vector<std::size_t> places_;
  std::vector<c10::SafePyObject> names_;
  const c10::SafePyObject function_;
  c10::SafePyObject arguments_;  // a tuple, with None for the tensors
  c10::SafePyObject keywords_;   // without the tensors
};

}  // namespace ferry::real::python
