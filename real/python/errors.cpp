#include "real/python/errors.h"

#include <torch/csrc/Exceptions.h>

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "ferry/offload.h"
#include "formats/error.h"
#include "real/disk/disk_error.h"
#include "real/tensors/host_memory_error.h"
#include "shared/checkpoint/errors.h"
#include "shared/seam/error.h"

namespace ferry::real::python {
namespace {

// The exception classes. They live as long as the process.
struct Classes {
  PyObject* plan_mismatch = nullptr;
  PyObject* segment_mismatch = nullptr;
  PyObject* checkpoint = nullptr;
  PyObject* disk_full = nullptr;
  PyObject* disk = nullptr;
  PyObject* stop = nullptr;
};
Classes classes;

constexpr const char* kCause = "_cpp";

PyObject* add(py::module_& module, const char* name, const char* about, const py::object& base) {
  const std::string full = std::string("torch_ferry.") + name;
  PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), about, base.ptr(), nullptr);
  if (!made) throw py::error_already_set();
  module.add_object(name, made);
  return made;
}

// How an exception appears in Python. The type is null if it is not one of Ferry's.
struct InPython {
  PyObject* type = nullptr;
  std::string text = {};
};
InPython in_python(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StopRecomputation& stop) {
    return {classes.stop, stop.what()};
  } catch (const SegmentMismatch& mismatch) {
    return {classes.segment_mismatch, mismatch.what()};
  } catch (const PlanMismatch& mismatch) {
    return {classes.plan_mismatch, mismatch.what()};
  } catch (const CheckpointError& wrong) {
    return {classes.checkpoint, wrong.what()};
  } catch (const InputError& input) {
    return {PyExc_ValueError, input.what()};
  } catch (const DiskFull& full) {
    return {classes.disk_full, full.what()};
  } catch (const DiskError& disk) {
    return {classes.disk, disk.what()};
  } catch (const OutOfHostMemory& memory) {
    return {PyExc_MemoryError, memory.what()};
  } catch (const ValueError& value) {
    return {PyExc_ValueError, value.what()};
  } catch (const Error& other) {
    return {PyExc_RuntimeError, other.what()};
  } catch (const std::bad_alloc& memory) {
    return {PyExc_MemoryError, memory.what()};
  } catch (const std::system_error& system) {
    return {PyExc_OSError, system.what()};
  } catch (...) {
    return {};
  }
}

// Sets Python's error indicator.
void set(const InPython& error, const std::exception_ptr& cause) {
  const auto made =
      py::reinterpret_steal<py::object>(PyObject_CallFunction(error.type, "s", error.text.c_str()));
  if (!made) return;  // the indicator has the reason
  if (error.type == classes.stop) {
    auto* const kept = new std::exception_ptr(cause);
    const py::capsule holder(kept, [](void* cpp) { delete static_cast<std::exception_ptr*>(cpp); });
    py::setattr(made, kCause, holder);
  }
  PyErr_SetObject(error.type, made.ptr());
}

void translate(std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (python_error& python) {
    python.restore();
  } catch (...) {
    const InPython ours = in_python(error);
    if (!ours.type) throw;
    set(ours, error);
  }
}

}  // namespace

void add_errors(py::module_& module) {
  const auto runtime = py::reinterpret_borrow<py::object>(PyExc_RuntimeError);
  const auto os = py::reinterpret_borrow<py::object>(PyExc_OSError);
  const auto base = py::reinterpret_borrow<py::object>(PyExc_BaseException);
  classes.plan_mismatch =
      add(module, "PlanMismatch", "The model saves other tensors than its plan says.", runtime);
  classes.segment_mismatch =
      add(module, "SegmentMismatch",
          "A checkpointed call saves another number of tensors than the plan says.",
          module.attr("PlanMismatch"));
  classes.checkpoint =
      add(module, "CheckpointError", "A recompute saves other tensors than forward did.",
          py::module_::import("torch.utils.checkpoint").attr("CheckpointError"));
  classes.disk = add(module, "DiskError", "The file that tensors are offloaded to failed.", os);
  classes.disk_full = add(module, "DiskFull", "The file that tensors are offloaded to is full.",
                          module.attr("DiskError"));
  classes.stop = add(module, "_StopRecomputation",
                     "Ends a recompute that has all it needs; not an error. Let it pass.", base);
  py::register_local_exception_translator(&translate);
}

void rethrow_to_python() {
  const std::exception_ptr error = std::current_exception();
  const InPython ours = in_python(error);
  if (!ours.type) std::rethrow_exception(error);
  const py::gil_scoped_acquire gil;
  set(ours, error);
  python_error python;
  python.persist();
  throw python;
}

void throw_from_python() {
  if (PyErr_ExceptionMatches(classes.stop)) {
    const py::error_already_set stop;
    const py::capsule cause = stop.value().attr(kCause);
    const std::exception_ptr cpp = *cause.get_pointer<std::exception_ptr>();
    std::rethrow_exception(cpp);
  }
  python_error python;
  python.persist();
  throw python;
}

}  // namespace ferry::real::python
