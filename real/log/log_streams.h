// The stream log of what a thread and its backwards do: while it lives, all sources write into it.
//
// The CPU allocator's blocks are of a caching pool of the computing stream: it gives them out again
// at once. They are told where the computing device is the CPU; the CUDA allocator tells its own
// where something moves (real/cuda_backend).
//
// What was made before it is not in it: an Offload whose copies shall be is made while it lives.
// It is made and thrown away by one thread.
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
  c10::Allocator* allocator_ = nullptr;  // the CPU's before this; null if this changed none
};

}  // namespace ferry::real
