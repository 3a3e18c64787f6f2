// ferry::checkpoint of a Python function: called with the interpreter's lock, in forward and in
// every recompute, whichever thread that is on. All else runs without.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ferry::real::python {

void add_checkpoint(py::module_& module);

}  // namespace ferry::real::python
