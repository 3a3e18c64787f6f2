// Offload and its guards, as Python has them: the entry of a Python program into the C++ core.
//
// An Offload is an OffloadSession, as in C++ (real/api/offload_session.h), whose hooks see a
// parameter first (parameters.h) and which a fork invalidates (fork.h).
//
// A guard is a pair on Python's stack (pair.h), not one of C++'s: a slot of ThreadLocalDebugInfo
// would have to be closed before whatever was opened after it, torch.profiler included.
//
// The way of a saved tensor: `with ferry.offload():` (python/torch_ferry/offload.py,
// offload_binding.cpp) opens a guard here, which pushes its pair. engine.cpp finds it for each
// tensor that a node saves, and gives LibTorch a SavedInPython (saved.h) that asks the session's
// hooks. From there on it is the way of C++: see the head of real/api/offload.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <memory>

#include "real/api/offload_session.h"

namespace ferry::real::python {

// What an Offload of torch_ferry holds.
class PythonOffload {
 public:
  // `plan`: executed; none where it is null. `parameters`: they are exempt, whosever they are.
  PythonOffload(const OffloadOptions& options, const Plan* plan, bool parameters);
  PythonOffload(const PythonOffload&) = delete;
  PythonOffload& operator=(const PythonOffload&) = delete;
  ~PythonOffload();

  // A guard of the calling thread. Closed in another order than they were opened, or elsewhere,
  // guards throw std::runtime_error; of those that are this thread's, this one is closed then.
  void open();
  void close(bool failed);

  // Throws std::runtime_error in a child of the process that made it.
  OffloadSession& session() const;

 private:
  std::shared_ptr<OffloadSession> session_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
  const std::uint64_t generation_;
};

// A guard under which nobody sees what is saved.
class PythonNoOffload {
 public:
  void open();
  void close();
};

// Waits for the copies of every Offload that there is. The interpreter is about to go, and a worker
// that then gives back a tensor of Python's would go down with it.
void finish_offloads();

void add_offload(py::module_& module);

}  // namespace ferry::real::python
