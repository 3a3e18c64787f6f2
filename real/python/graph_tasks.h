// Detects the ends of backwards in a Python process. Its engine does not report them: LibTorch
// calls final callbacks only after success. But a backward owns its callbacks and destroys them
// before it returns or raises, and Ferry uses that.
#pragma once

namespace ferry::real::python {

// Drops the ready nodes that a failed backward left in the queue of the calling thread. They would
// keep their graph and saved tensors until the next backward. The thread must run no task.
void drop_what_is_ready();

}  // namespace ferry::real::python
