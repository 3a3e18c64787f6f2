// A training's stream log: while it lives, all sources write into it.
//
// The CPU allocator's blocks are of a caching pool of the computing stream: it gives them out again
// at once. They are told by a training on the CPU; the CUDA allocator tells its own where a policy
// moves something (real/cuda_backend).
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>

#include "real/api/stream_log.h"
#include "real/train/op_log.h"

namespace ferry::real::train {

class LogStreams {
 public:
  // Throws std::system_error if the file cannot be made, std::logic_error if a log exists already.
  LogStreams(const std::filesystem::path& file, c10::Device device);
  LogStreams(const LogStreams&) = delete;
  LogStreams& operator=(const LogStreams&) = delete;
  ~LogStreams();

  // Throws std::system_error if a line could not be written.
  void check() { log_->check(); }
  // Makes the file appear. Call it once, at the end. It throws likewise.
  void commit() { log_->commit(); }

 private:
  std::shared_ptr<StreamLog> log_;
  StreamLog::Scope scope_;
  OpLog ops_;
};

}  // namespace ferry::real::train
