// Exceptions between C++ and Python.
//
// An op that throws one of C++'s types reaches Python as a RuntimeError, whatever it was, and so
// does a backward. Ours become exceptions of Python's before they leave our hooks. One comes back:
// the exception by which a recompute ends early passes through the user's function, and is the same
// one again in the C++ that waits for it.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace ferry::real::python {

// Adds the classes to the module.
void add_errors(py::module_& module);

// Within a catch block: throws what is caught again, as python_error where it is one of ours.
[[noreturn]] void rethrow_to_python();

// Where Python's error indicator is set; the caller holds the interpreter's lock. Throws
// python_error, or what was ours.
[[noreturn]] void throw_from_python();

}  // namespace ferry::real::python
