// Offload and its guards for Python: the entry point of a Python program into the C++ core.
//
// As in C++, an Offload is an OffloadSession (real/api/offload_session.h). In addition its hooks
// look for parameters first (parameters.h), and a fork makes it invalid (fork.h).
//
// A guard is a pair on Python's stack of hooks (pair.h), not a C++ guard: a slot of
// ThreadLocalDebugInfo would have to be closed before everything that was opened after it, such as
// torch.profiler.
//
// The path of a saved tensor: `with ferry.offload():` (python/torch_ferry/offload.py,
// offload_binding.cpp) opens a guard here, which pushes its pair. engine.cpp finds the pair for
// each tensor that a node saves, and gives LibTorch a SavedInPython (saved.h) that calls the
// session's hooks. From there the path is that of C++; see the head of real/api/offload.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <memory>

#include "real/api/offload_session.h"

namespace ferry::real::python {

// The C++ part of an Offload of torch_ferry.
class PythonOffload {
 public:
  // Executes `plan`, unless it is null. With `parameters`, all parameters are exempt, of any
  // module.
  PythonOffload(const OffloadOptions& options, const Plan* plan, bool parameters);
  PythonOffload(const PythonOffload&) = delete;
  PythonOffload& operator=(const PythonOffload&) = delete;
  ~PythonOffload();

  // Opens and closes a guard on the calling thread. A guard that is closed in another order, or on
  // another thread, throws std::runtime_error. If it belongs to this thread, it is closed
  // nevertheless.
  void open();
  void close(bool failed);

  // Throws std::runtime_error in a child of the process that made it.
  OffloadSession& session() const;

 private:
  std::shared_ptr<OffloadSession> session_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
  const std::uint64_t generation_;
};

// A guard under which no hooks see saved tensors.
class PythonNoOffload {
 public:
  void open();
  void close();
};

// Waits for the copies of all Offloads. Call it before the interpreter ends: a worker that drops a
// Python tensor after that would crash.
void finish_offloads();

void add_offload(py::module_& module);

}  // namespace ferry::real::python
