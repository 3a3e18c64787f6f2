#include <Python.h>
// Python first: it says so.
#include <ATen/SequenceNumber.h>
#include <frameobject.h>
#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "vgpu/python/places.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

class Interpreter {
 public:
  Interpreter() : state_(PyGILState_Ensure()) {}
  ~Interpreter() { PyGILState_Release(state_); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  PyGILState_STATE state_;
};

// What is known of a function's code; the code is kept, so that its address stays its own.
struct Code {
  bool hidden = true;  // PyTorch's, or the interpreter's
  std::string file;
  std::string function;
};

std::string text_of(PyObject* object, const char* attribute) {
  PyObject* const value = PyObject_GetAttrString(object, attribute);
  const char* const text = value != nullptr ? PyUnicode_AsUTF8(value) : nullptr;
  std::string copy = text != nullptr ? text : "?";
  PyErr_Clear();
  Py_XDECREF(value);
  return copy;
}

// All of it under the interpreter's lock, or the mutex. Never destroyed: operators run to the end.
class Places {
 public:
  static Places& get() {
    static auto* const places = new Places;
    return *places;
  }

  const char* here() {
    const std::string* place = nullptr;
    if (const auto node = torch::autograd::get_current_node()) place = of_node(*node);
    if (place == nullptr) place = of_frames();
    if (place == nullptr) return nullptr;
    if (c10::GradMode::is_enabled()) made(at::sequence_number::peek(), place);
    return place->c_str();
  }

 private:
  static constexpr std::size_t kNodes = std::size_t{1} << 18;  // the latest

  struct Made {
    std::uint64_t number = 0;
    const std::string* place = nullptr;
  };

  const std::string* intern(std::string text) {
    const std::lock_guard lock(mutex_);
    return &*texts_.insert(std::move(text)).first;
  }

  // The operator's node, if it has one, is the last that was counted.
  void made(std::uint64_t next, const std::string* place) {
    if (next == 0) return;
    const std::lock_guard lock(mutex_);
    nodes_[(next - 1) % kNodes] = {next - 1, place};
  }

  const std::string* of_node(const torch::autograd::Node& node) {
    const std::uint64_t number = node.sequence_nr();
    const std::string* forward = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const Made& made = nodes_[number % kNodes];
      if (made.number == number) forward = made.place;
    }
    // A node in Python has frames of its own.
    if (const std::string* const own = of_frames()) return own;
    return intern(forward != nullptr ? "the backward of " + *forward : node.name());
  }

  const std::string* of_frames() {
    if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) return nullptr;
    const Interpreter interpreter;
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    const std::string* place = nullptr;
    while (frame != nullptr && place == nullptr) {
      PyCodeObject* const code = PyFrame_GetCode(frame);
      const Code& known = know(code);
      Py_DECREF(code);
      if (!known.hidden) {
        place = intern(known.file + ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " in " +
                       known.function);
      }
      PyFrameObject* const outer = PyFrame_GetBack(frame);
      Py_DECREF(frame);
      frame = outer;
    }
    Py_XDECREF(frame);
    return place;
  }

  const Code& know(PyCodeObject* code) {
    const auto [found, fresh] = codes_.try_emplace(code);
    Code& known = found->second;
    if (!fresh) return known;
    Py_INCREF(code);
    auto* const object = reinterpret_cast<PyObject*>(code);
    known.file = text_of(object, "co_filename");
    known.function = text_of(object, "co_name");
    known.hidden = known.file.find("/site-packages/torch/") != std::string::npos ||
                   known.file.starts_with("<frozen ") || known.file.ends_with("/vgpu/launch.py") ||
                   known.file.ends_with("/vgpu/ferry_views.py");
    return known;
  }

  std::unordered_map<PyCodeObject*, Code> codes_;
  std::mutex mutex_;
  std::set<std::string> texts_;
  std::vector<Made> nodes_ = std::vector<Made>(kNodes);
};

const char* here() { return Places::get().here(); }

}  // namespace

void find_places() { set_place_finder(here); }

}  // namespace ferry::vgpu
