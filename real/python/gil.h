// Releases the interpreter's lock (the GIL).
//
// A thread that holds the lock must not wait for a thread that may need it. Copy threads and
// autograd's threads may drop the last reference to a tensor that Python has seen, which takes the
// lock.
#pragma once

#include <Python.h>

namespace ferry::real::python {

// While it lives, the calling thread does not hold the lock. The destructor takes it back.
class GilReleased {
 public:
  GilReleased() : held_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    if (held_) PyEval_RestoreThread(held_);
  }

 private:
  PyThreadState* const held_;
};

}  // namespace ferry::real::python
