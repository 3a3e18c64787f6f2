// A call of a Python function whose tensors are kept by somebody else, as ferry::checkpoint keeps
// them.
#pragma once

#include <c10/core/SafePyObject.h>
#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace ferry::real::python {

using Tensors = std::vector<at::Tensor>;

// An object of Python's that may die without the interpreter's lock.
c10::SafePyObject keep(const py::object& object);
py::object borrow(const c10::SafePyObject& kept);  // with the lock

class Call {
 public:
  // Takes the tensors among the arguments, keywords' included, apart.
  Call(const py::object& function, const py::tuple& arguments, const py::dict& keywords);

  Tensors take_tensors() { return std::move(tensors_); }

  // Takes the lock. Throws what the function raises; and where the function leaves saved-tensor
  // hooks open that it opened, closes them and throws std::runtime_error.
  c10::SafePyObject operator()(Tensors tensors) const;

 private:
  Tensors tensors_;  // those of places_, then those of names_
  std::vector<std::size_t> places_;
  std::vector<c10::SafePyObject> names_;
  const c10::SafePyObject function_;
  c10::SafePyObject arguments_;  // a tuple, with None in the tensors' places
  c10::SafePyObject keywords_;   // without the tensors
};

}  // namespace ferry::real::python
