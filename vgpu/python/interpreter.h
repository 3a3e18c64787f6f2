// Guards for C++ code that looks at a program's Python frames (frames.h) or clears its errors: they
// hold the interpreter's lock, or keep garbage collection or a pending exception out of the way.
#pragma once

#include <Python.h>

// This folder is compiled once for all Pythons from 3.10 on (Py_LIMITED_API). These two functions
// are not in that interface, but every Python has them.
extern "C" {
PyAPI_FUNC(PyFrameObject*) PyFrame_GetBack(PyFrameObject*);
PyAPI_FUNC(int) PyGILState_Check();
}

namespace ferry::vgpu {

// Holds the interpreter's lock. Waits for it, unless the calling thread has it already.
class Interpreter {
 public:
  Interpreter() : state_(PyGILState_Ensure()) {}
  ~Interpreter() { PyGILState_Release(state_); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

// Prevents garbage collection, which would free tensors and so call the runtime again.
class WithoutCollections {
 public:
  WithoutCollections() : was_enabled_(PyGC_Disable()) {}
  ~WithoutCollections() {
    if (was_enabled_ != 0) PyGC_Enable();
  }
  WithoutCollections(const WithoutCollections&) = delete;
  WithoutCollections& operator=(const WithoutCollections&) = delete;

 private:
  int was_enabled_;
};

// Sets a pending exception aside while it lives, because a block may be freed during an exception.
class WithoutException {
 public:
  WithoutException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~WithoutException() { PyErr_Restore(type_, value_, traceback_); }
  WithoutException(const WithoutException&) = delete;
  WithoutException& operator=(const WithoutException&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

}  // namespace ferry::vgpu
