// Writes stream operations as lines of the stream log (formats/STREAM_LOG.md). formats/stream_log.h
// reads back the same operation.
//
// Events and tokens are written as numbers; streams and threads by name if they have one, else as
// numbers. An operation of the core without a name gets the name of its step. The log cannot
// express the tag, the step, and that a copy from device to device is between two devices; these
// are lost. A buffer that is read and written counts as written only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/atomic_file.h"
#include "formats/stream_op.h"

namespace ferry {

class StreamLogText {
 public:
  // Gives a stream or thread a name, in UTF-8. Two streams, or threads, with the same name become
  // one.
  void call(StreamId stream, std::string name);
  void call(HostThread thread, std::string name);

  // Returns a line with its end, valid until the next call. Throws std::invalid_argument for what
  // the log cannot express: bytes beyond address 2^59, a copy or memset of more or less than one
  // buffer, or a copy for which the host waits in a way that no copy of its kind does.
  std::string_view line(const StreamOp& op);

 private:
  using Names = std::map<std::uint32_t, std::string>;  // the names, as JSON

  void word(std::string_view key, std::string_view value);
  void number(std::string_view key, std::uint64_t value);
  void id(std::string_view key, const Names& names, std::uint32_t value);
  void stream(const StreamOp& op);
  void buffer(std::string_view key, Range range);
  void buffers(std::string_view key, std::span<const Range> ranges);
  void range(Range range);
  void body(const StreamOp& op);
  void graph(const StreamOp& op);
  void copy(const StreamOp& op);
  void memset(const StreamOp& op);

  Names streams_, threads_;
  std::string text_;
};

// Writes lines to a file, completely or not at all (formats/atomic_file.h). Throws
// std::system_error if the machine fails: a missing folder, a full disk.
class StreamLogFile {
 public:
  explicit StreamLogFile(std::filesystem::path target) : file_(std::move(target)) {}

  StreamLogText& text() { return text_; }
  void write(const StreamOp& op) { file_.write(text_.line(op)); }
  void write(std::string_view line) { file_.write(line); }  // with its end
  void commit() { file_.commit(); }                         // call it once

 private:
  StreamLogText text_;
  AtomicFile file_;
};

}  // namespace ferry
