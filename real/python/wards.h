// The storages of an optimizer's state, for Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ferry::real::python {

void add_wards(py::module_& module);

}  // namespace ferry::real::python
