// The stream log of a thread and its backwards: while it lives, all sources write to it.
//
// If the computing device is the CPU, the blocks of the CPU allocator are logged, as blocks of a
// caching pool of the computing stream, because the allocator reuses them at once. The CUDA
// allocator logs its own blocks if something is offloaded (real/cuda_backend).
//
// An Offload that was made before the log is not in it, so make it while the log lives. The thread
// that makes the log must also destroy it.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <memory>

#include "real/api/stream_log.h"
#include "real/log/op_log.h"

namespace ferry::real {

class LogStreams {
 public:
  // Throws std::system_error if the file cannot be made, an Error if a log exists already.
  LogStreams(const std::filesystem::path& file, c10::Device device);
  LogStreams(const LogStreams&) = delete;
  LogStreams& operator=(const LogStreams&) = delete;
  ~LogStreams();

  // Throws std::system_error if a line could not be written.
  void check() { log_->check(); }
  // Makes the file appear. Call it once, at the end. It throws what check() throws.
  void commit() { log_->commit(); }

 private:
  std::shared_ptr<StreamLog> log_;
  StreamLog::Scope scope_;
  OpLog ops_;
  c10::Allocator* allocator_ = nullptr;  // the previous CPU allocator; null: unchanged
};

}  // namespace ferry::real
