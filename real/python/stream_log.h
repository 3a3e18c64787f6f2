// The stream log of a Python `with` block (python/torch_ferry/stream_log.py). close() ends it, so
// that its errors become Python exceptions. A log that is never closed is leaked, and its file does
// not appear.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>

#include "real/log/log_streams.h"

namespace ferry::real::python {

class PythonStreamLog {
 public:
  // Throws what LogStreams throws.
  PythonStreamLog(const std::filesystem::path& file, c10::Device device);
  PythonStreamLog(const PythonStreamLog&) = delete;
  PythonStreamLog& operator=(const PythonStreamLog&) = delete;
  ~PythonStreamLog();

  // Ends the log and makes the file appear. Throws std::system_error if the file could not be
  // written. Throws std::runtime_error on another thread than the one that made this, in a child
  // process, or if it is called twice.
  void close();

 private:
  std::unique_ptr<LogStreams> streams_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t generation_;
};

void add_stream_log(py::module_& module);

}  // namespace ferry::real::python
