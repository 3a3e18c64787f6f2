#include "vgpu/python/frames.h"

#include <cstddef>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "vgpu/python/interpreter.h"
#include "vgpu/python/whose.h"

namespace ferry::vgpu {
namespace {

constexpr std::string_view kRunBackward = "run_backward";  // the function in ferry_places.py

// The facts about a function's code. The code object is kept alive, so that no other one gets its
// address.
struct Code {
  Whose whose = Whose::kNobodys;
  bool runs_backward = false;  // frames outside it do not belong to backward's nodes
  std::string file;
  std::string function;  // with its class: "Block.forward"
};

std::string text_of(PyObject* object, const char* attribute) {
  PyObject* const value = PyObject_GetAttrString(object, attribute);
  const char* const text = value != nullptr ? PyUnicode_AsUTF8AndSize(value, nullptr) : nullptr;
  std::string copy = text != nullptr ? text : "?";
  PyErr_Clear();
  Py_XDECREF(value);
  return copy;
}

// Returns the function's name with that of its class: two modules of one file may both have a
// forward. Python has such names from 3.11 on. Functions around it are left out.
std::string function_of(PyObject* code, const std::string& name) {
  constexpr std::string_view kLocals = "<locals>.";
  if (PyObject_HasAttrString(code, "co_qualname") == 0) return name;
  const std::string whole = text_of(code, "co_qualname");
  const std::size_t locals = whole.rfind(kLocals);
  return locals == std::string::npos ? whole : whole.substr(locals + kLocals.size());
}

// Call it with the interpreter's lock. Never destroyed, because operators run until the process
// ends.
const Code& know(PyCodeObject* code) {
  static auto* const codes = new std::unordered_map<PyCodeObject*, Code>;
  const auto [found, fresh] = codes->try_emplace(code);
  Code& known = found->second;
  if (!fresh) return known;
  const WithoutException set_aside;
  Py_INCREF(code);
  auto* const object = reinterpret_cast<PyObject*>(code);
  known.file = text_of(object, "co_filename");
  const std::string name = text_of(object, "co_name");
  known.function = function_of(object, name);
  known.whose = whose(known.file, name);
  known.runs_backward = name == kRunBackward && known.whose == Whose::kNobodys;
  return known;
}

const std::string* place_in(const Code& code, PyFrameObject* frame) {
  return keep_text(code.file + ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " in " +
                   code.function);
}

}  // namespace

const std::string* keep_text(std::string text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*texts->insert(std::move(text)).first;
}

const std::string* place_of_frames() {
  if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) return nullptr;
  const Interpreter interpreter;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  const std::string* programs = nullptr;
  const std::string* torchs = nullptr;
  while (frame != nullptr && programs == nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const Code& known = know(code);
    Py_DECREF(code);
    if (known.whose == Whose::kPrograms) programs = place_in(known, frame);
    if (known.whose == Whose::kTorchs && torchs == nullptr) torchs = place_in(known, frame);
    PyFrameObject* const outer = known.runs_backward ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return programs != nullptr ? programs : torchs;
}

const std::string* place_of_frames_without_waiting() {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return nullptr;
  const WithoutCollections until_then;
  return place_of_frames();
}

}  // namespace ferry::vgpu
