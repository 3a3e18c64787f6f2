// The interpreter's lock.
//
// A thread that holds it waits for none that may need it: what computes gives tensors back, and the
// last reference to a tensor that Python has seen takes the lock to go.
#pragma once

#include <Python.h>

namespace ferry::real::python {

// While it lives, the calling thread does not hold the lock, if it did.
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
