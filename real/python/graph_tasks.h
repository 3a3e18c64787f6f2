// The graph tasks of a Python process: graph_tasks.cpp defines GraphTask::current()
// (real/autograd/graph_task.h) there. In a C++ program real/engine does.
//
// Python's engine does not report the end of a backward: LibTorch calls final callbacks only after
// success. But a backward owns its callbacks and destroys them before it returns or raises. So the
// first call of current() in a backward makes its task and queues a callback, and the end of this
// callback is the end of the task. A backward in which nothing of Ferry asks has no task.
#pragma once

namespace ferry::real::python {

// Drops the ready nodes that a failed backward left in the queue of the calling thread. They would
// keep their graph and saved tensors until the next backward. The thread must run no task.
void drop_what_is_ready();

}  // namespace ferry::real::python
