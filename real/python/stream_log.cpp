#include "real/python/stream_log.h"

#include <pybind11/stl/filesystem.h>

#include <stdexcept>
#include <utility>

#include "real/python/fork.h"

namespace ferry::real::python {

PythonStreamLog::PythonStreamLog(const std::filesystem::path& file, c10::Device device)
    : streams_(std::make_unique<LogStreams>(file, device)), generation_(process_generation()) {}

// A log that was not closed is leaked. It would restore thread-local state, but its thread may be
// gone.
PythonStreamLog::~PythonStreamLog() { static_cast<void>(streams_.release()); }

void PythonStreamLog::close() {
  if (!streams_ || thread_ != std::this_thread::get_id() || generation_ != process_generation()) {
    throw std::runtime_error(
        "torch_ferry: this stream log is not open here; close it once, on the thread and in the "
        "process that opened it");
  }
  const std::unique_ptr<LogStreams> ended = std::move(streams_);
  ended->commit();
}

void add_stream_log(py::module_& module) {
  py::class_<PythonStreamLog>(module, "StreamLog")
      .def(py::init<const std::filesystem::path&, c10::Device>())
      .def("close", &PythonStreamLog::close);
}

}  // namespace ferry::real::python
