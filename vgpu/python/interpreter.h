// What has to be held, or kept out, while C++ looks at a program's Python.
#pragma once

#include <Python.h>

// The folder is compiled once for all Pythons from 3.10 on (Py_LIMITED_API). These two are not in
// that interface, and are in every Python.
extern "C" {
PyAPI_FUNC(PyFrameObject*) PyFrame_GetBack(PyFrameObject*);
PyAPI_FUNC(int) PyGILState_Check();
}

namespace ferry::vgpu {

// The interpreter's lock: waited for, unless the calling thread has it.
class Interpreter {
 public:
  Interpreter() : state_(PyGILState_Ensure()) {}
  ~Interpreter() { PyGILState_Release(state_); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

// No collection, which would free tensors, and so call the runtime again.
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

// An exception that is on its way is set aside: a block may be freed meanwhile.
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
