// Stream operations as lines of the stream log (formats/TRACE.md). formats/trace.h reads back the
// same operation.
//
// Streams, events, tokens and threads are called by their numbers, streams and threads by a name
// where they were given one. An unnamed operation of the core gets the name of its step. The log
// has no word for some things, and they are lost: the tag, which step it was, and that a copy from
// device to device is between two. A buffer that is read and written is only written.
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

class TraceText {
 public:
  // Names are UTF-8. Two streams, or threads, of the same name become one.
  void call(StreamId stream, std::string name);
  void call(HostThread thread, std::string name);

  // A line with its end; valid until the next call. Throws std::invalid_argument for what the log
  // cannot express: bytes beyond address 2^59, a copy or memset of other than one buffer, a copy
  // whose wait of the host fits none of its kind.
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
  void copy(const StreamOp& op);
  void memset(const StreamOp& op);

  Names streams_, threads_;
  std::string text_;
};

// Writes the same to a file, which appears whole or not at all (formats/atomic_file.h). Throws
// std::system_error if the machine fails: a missing folder, a full disk.
class TraceFile {
 public:
  explicit TraceFile(std::filesystem::path target) : file_(std::move(target)) {}

  TraceText& text() { return text_; }
  void write(const StreamOp& op) { file_.write(text_.line(op)); }
  void write(std::string_view line) { file_.write(line); }  // with its end
  void commit() { file_.commit(); }                         // call it once

 private:
  TraceText text_;
  AtomicFile file_;
};

}  // namespace ferry
