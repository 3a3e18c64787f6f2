#include "formats/stream_log_write.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "formats/stream_log.h"
#include "formats/stream_log_words.h"

namespace ferry {
namespace {

using namespace stream_log_words;

std::string_view word_of(StreamOpKind kind) {
  switch (kind) {
    case StreamOpKind::kKernel:
      return "kernel";
    case StreamOpKind::kCopy:
      return "copy";
    case StreamOpKind::kRecord:
      return "record";
    case StreamOpKind::kWait:
      return "wait";
    case StreamOpKind::kEventSync:
      return "event_sync";
    case StreamOpKind::kStreamSync:
      return "stream_sync";
    case StreamOpKind::kAlloc:
      return "alloc";
    case StreamOpKind::kFree:
      return "free";
    case StreamOpKind::kRecordUse:
      return "record_use";
    case StreamOpKind::kHostRead:
      return "host_read";
    case StreamOpKind::kHostWrite:
      return "host_write";
    case StreamOpKind::kMemset:
      return "memset";
    case StreamOpKind::kHostFunc:
      return "host_func";
    case StreamOpKind::kDeviceSync:
      return "device_sync";
    case StreamOpKind::kRelease:
      return "release";
    case StreamOpKind::kAcquire:
      return "acquire";
    case StreamOpKind::kStream:
      return "stream";
    case StreamOpKind::kStreamDestroy:
      return "stream_destroy";
    case StreamOpKind::kEventDestroy:
      return "event_destroy";
    case StreamOpKind::kHostView:
      return "host_view";
    case StreamOpKind::kHostViewEnd:
      return "host_view_end";
  }
  return "";
}

// Quotes a text. Bytes that are not UTF-8 are replaced.
std::string as_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append(std::string& text, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  text.append(digits, end);
}

void require_one(std::span<const Range> ranges, const char* what) {
  if (ranges.size() != 1) throw std::invalid_argument(what);
}

}  // namespace

void StreamLogText::call(StreamId stream, std::string name) {
  streams_[static_cast<std::uint32_t>(stream)] = as_json(name);
}

void StreamLogText::call(HostThread thread, std::string name) {
  threads_[static_cast<std::uint32_t>(thread)] = as_json(name);
}

std::string_view StreamLogText::line(const StreamOp& op) {
  text_.assign("{\"op\":\"").append(word_of(op.kind)).append("\"");
  body(op);
  graph(op);
  if (op.thread != HostThread{}) {
    id("thread", threads_, static_cast<std::uint32_t>(op.thread));
  }
  if (op.device != 0) number("device", op.device);
  const bool steps = op.name.empty() && op.step != Step::kUser;
  const std::string_view said = steps ? name(op.step) : op.name;
  if (!said.empty()) text_.append(",\"name\":").append(as_json(said));
  return text_.append("}\n");
}

void StreamLogText::body(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kKernel:
    case StreamOpKind::kHostFunc:
      stream(op);
      buffers("reads", op.reads);
      buffers("writes", op.writes);
      return;
    case StreamOpKind::kCopy:
      return copy(op);
    case StreamOpKind::kMemset:
      return memset(op);
    case StreamOpKind::kRecord:
    case StreamOpKind::kWait:
      number("event", static_cast<std::uint32_t>(op.event));
      return stream(op);
    case StreamOpKind::kEventSync:
    case StreamOpKind::kEventDestroy:
      return number("event", static_cast<std::uint32_t>(op.event));
    case StreamOpKind::kStreamSync:
    case StreamOpKind::kStreamDestroy:
      return stream(op);
    case StreamOpKind::kAlloc:
    case StreamOpKind::kFree:
      range(op.range);
      stream(op);
      return word("pool", kPools[static_cast<std::size_t>(op.pool)]);
    case StreamOpKind::kRecordUse:
      buffer("buffer", op.range);
      if (op.until_event) number("event", static_cast<std::uint32_t>(op.event));
      return stream(op);
    case StreamOpKind::kHostRead:
    case StreamOpKind::kHostWrite:
    case StreamOpKind::kHostView:
    case StreamOpKind::kHostViewEnd:
      return buffer("buffer", op.range);
    case StreamOpKind::kRelease:
    case StreamOpKind::kAcquire:
      if (op.in_stream) stream(op);
      return number("token", static_cast<std::uint32_t>(op.token));
    case StreamOpKind::kStream:
      id("id", streams_, static_cast<std::uint32_t>(op.stream));
      return word("kind", kStreamKinds[static_cast<std::size_t>(op.stream_kind)]);
    case StreamOpKind::kDeviceSync:
      return;
  }
}

void StreamLogText::graph(const StreamOp& op) {
  if (op.graph_pool != 0) number("graph_pool", op.graph_pool);
  if (op.graph == GraphId{}) return;
  number("graph", static_cast<std::uint32_t>(op.graph));
  if (op.kind == StreamOpKind::kAlloc) return;
  number("node", op.node);
  if (op.captured) text_.append(",\"captured\":true");
}

// Chooses kinds of memory for which a blocking call makes the host wait in this way.
void StreamLogText::copy(const StreamOp& op) {
  require_one(op.reads, "a copy reads one buffer");
  require_one(op.writes, "a copy writes one buffer");
  stream(op);
  buffer("src", op.reads.front());
  buffer("dst", op.writes.front());
  const bool from_host = op.copy == CopyKind::kHostToDevice;
  const bool to_host = op.copy == CopyKind::kDeviceToHost;
  const bool staged = op.host_order == HostOrder::kStaged;
  if ((staged && !from_host) || (op.host_order != HostOrder::kNone && !from_host && !to_host)) {
    throw std::invalid_argument("a stream log cannot express this wait of the host for this copy");
  }
  word("src_kind", kMemoryKinds[staged ? kPageable : from_host ? kPinned : kDevice]);
  word("dst_kind", kMemoryKinds[to_host ? kPinned : kDevice]);
  if (op.host_order != HostOrder::kNone) text_.append(",\"blocked\":true");
}

void StreamLogText::memset(const StreamOp& op) {
  require_one(op.writes, "a memset writes one buffer");
  stream(op);
  buffer("dst", op.writes.front());
  if (op.host_order != HostOrder::kNone) text_.append(",\"blocked\":true");
}

void StreamLogText::word(std::string_view key, std::string_view value) {
  text_.append(",\"").append(key).append("\":\"").append(value).append("\"");
}

void StreamLogText::number(std::string_view key, std::uint64_t value) {
  text_.append(",\"").append(key).append("\":");
  append(text_, value);
}

void StreamLogText::id(std::string_view key, const Names& names, std::uint32_t value) {
  const auto found = names.find(value);
  if (found == names.end()) return number(key, value);
  text_.append(",\"").append(key).append("\":").append(found->second);
}

void StreamLogText::stream(const StreamOp& op) {
  id("stream", streams_, static_cast<std::uint32_t>(op.stream));
}

void StreamLogText::range(Range range) {
  if (range.address > kNamedBuffers || range.bytes > kNamedBuffers - range.address) {
    throw std::invalid_argument("a stream log cannot express addresses beyond 2^59");
  }
  number("address", range.address);
  number("bytes", range.bytes);
}

void StreamLogText::buffer(std::string_view key, Range range) {
  text_.append(",\"").append(key).append("\":{");
  const std::size_t from = text_.size();
  this->range(range);
  text_.erase(from, 1);  // erases the first comma
  text_.append("}");
}

void StreamLogText::buffers(std::string_view key, std::span<const Range> ranges) {
  text_.append(",\"").append(key).append("\":[");
  const std::size_t begin = text_.size();
  for (const Range& each : ranges) {
    const std::size_t from = text_.size();
    range(each);
    text_.replace(from, 1, from == begin ? "{" : ",{");
    text_.append("}");
  }
  text_.append("]");
}

}  // namespace ferry
