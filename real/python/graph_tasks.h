// The ends of backwards in a Python process, whose engine tells nobody of them: LibTorch runs its
// final callbacks after a success alone. But a backward owns them, and they die with it, before it
// returns or raises.
#pragma once

namespace ferry::real::python {

// What a failed backward left in the thread's queue, with its graph and all that it saved, until
// the next one. The calling thread runs no task.
void drop_what_is_ready();

}  // namespace ferry::real::python
