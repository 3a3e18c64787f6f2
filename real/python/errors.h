// Converts exceptions between C++ and Python.
//
// If an op or a backward throws a C++ exception, Python gets a RuntimeError, whatever the type was.
// So Ferry's errors become Python exceptions before they leave Ferry's hooks. One of them comes
// back: the exception that ends a recompute early passes through the user's Python function, and is
// the same C++ exception again where C++ waits for it.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ferry::real::python {

// Adds the exception classes to the module.
void add_errors(py::module_& module);

// Call it in a catch block. It rethrows the exception, as a python_error if it is one of Ferry's.
[[noreturn]] void rethrow_to_python();

// Call it when Python's error indicator is set, with the interpreter's lock. If Python's error is
// the one that ends a recompute early, throws the original C++ exception, else python_error.
[[noreturn]] void throw_from_python();

}  // namespace ferry::real::python
