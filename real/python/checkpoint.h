// ferry::checkpoint for a Python function. The function is called with the interpreter's lock, in
// forward and in every recompute, on whichever thread. Everything else runs without the lock.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ferry::real::python {

void add_checkpoint(py::module_& module);

}  // namespace ferry::real::python
