// Offload and its guards, as Python has them.
//
// A guard is a pair on Python's stack (pair.h), not one of C++'s: a slot of ThreadLocalDebugInfo
// would have to be closed before whatever was opened after it, torch.profiler included.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <memory>

#include "real/api/offload_state.h"

namespace ferry::real::python {

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
  OffloadState& state() const;

 private:
  std::shared_ptr<OffloadState> state_;
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
