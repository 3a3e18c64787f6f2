// Reads the lines of a stream log: first the keys of a line, then their meaning for its operation.
#include "formats/stream_log.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "formats/error.h"
#include "formats/limits.h"
#include "formats/stream_log_words.h"

namespace ferry {
namespace {

using namespace stream_log_words;

constexpr std::array<std::string_view, 2> kApis = {"async", "sync"};
constexpr std::array<std::string_view, 2> kResults = {"not_ready", "done"};
constexpr std::string_view kIdText = "a string or an integer";
constexpr std::string_view kBufferText = "a name or {\"address\":A,\"bytes\":N}";

std::string list(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text.append("\"").append(words[i]).append("\"");
  }
  return text;
}

// CUDA's table "API synchronization behavior", for a call that is synchronous or blocked.
HostOrder copy_order(std::size_t from, std::size_t to) {
  if (from == kDevice && to == kDevice) return HostOrder::kNone;
  if (from == kPageable && to == kDevice) return HostOrder::kStaged;
  return HostOrder::kDone;
}

}  // namespace

enum class StreamLogReader::Op : std::uint8_t {
  kStream,
  kStreamDestroy,
  kEventDestroy,
  kKernel,
  kCopy,
  kMemset,
  kRecord,
  kWait,
  kEventSync,
  kStreamSync,
  kDeviceSync,
  kEventQuery,
  kStreamQuery,
  kAlloc,
  kFree,
  kRecordUse,
  kHostRead,
  kHostWrite,
  kRelease,
  kAcquire,
  kHostFunc,
  kHostView,
  kHostViewEnd,
};

struct StreamLogReader::OpName {
  std::string_view name;
  StreamOpKind kind;
};

// In the order of Op.
const StreamLogReader::OpName StreamLogReader::kOps[] = {
    {"stream", StreamOpKind::kStream},
    {"stream_destroy", StreamOpKind::kStreamDestroy},
    {"event_destroy", StreamOpKind::kEventDestroy},
    {"kernel", StreamOpKind::kKernel},
    {"copy", StreamOpKind::kCopy},
    {"memset", StreamOpKind::kMemset},
    {"record", StreamOpKind::kRecord},
    {"wait", StreamOpKind::kWait},
    {"event_sync", StreamOpKind::kEventSync},
    {"stream_sync", StreamOpKind::kStreamSync},
    {"device_sync", StreamOpKind::kDeviceSync},
    {"event_query", StreamOpKind::kEventSync},
    {"stream_query", StreamOpKind::kStreamSync},
    {"alloc", StreamOpKind::kAlloc},
    {"free", StreamOpKind::kFree},
    {"record_use", StreamOpKind::kRecordUse},
    {"host_read", StreamOpKind::kHostRead},
    {"host_write", StreamOpKind::kHostWrite},
    {"release", StreamOpKind::kRelease},
    {"acquire", StreamOpKind::kAcquire},
    {"host_func", StreamOpKind::kHostFunc},
    {"host_view", StreamOpKind::kHostView},
    {"host_view_end", StreamOpKind::kHostViewEnd},
};

// Compares by length first, which leaves few candidates.
StreamLogReader::Key StreamLogReader::find_key(std::string_view text) {
  const auto among = [&](std::initializer_list<Key> keys) {
    for (const Key key : keys) {
      if (text == key_name(key)) return key;
    }
    return Key::kNone;
  };
  switch (text.size()) {
    case 2:
      return among({Key::kOp, Key::kId});
    case 3:
      return among({Key::kSrc, Key::kDst, Key::kApi});
    case 4:
      return among({Key::kName, Key::kKind, Key::kPool, Key::kNode});
    case 5:
      return among({Key::kReads, Key::kEvent, Key::kBytes, Key::kWhere, Key::kToken, Key::kFerry,
                    Key::kGraph});
    case 6:
      return among(
          {Key::kStream, Key::kWrites, Key::kThread, Key::kBuffer, Key::kDevice, Key::kResult});
    case 7:
      return among({Key::kAddress, Key::kBlocked});
    case 8:
      return among({Key::kSrcKind, Key::kDstKind, Key::kCaptured});
    case 10:
      return among({Key::kGraphPool});
    default:
      return Key::kNone;
  }
}

bool StreamLogReader::read(std::string_view text, std::uint64_t line, StreamOp& op) {
  if (destroyed_ != NameIds::kNone) events_.erase(std::exchange(destroyed_, NameIds::kNone));
  try {
    scan_.reset(text);
    if (scan_.blank()) return false;
    scan();
    if (find(Key::kFerry) && !find(Key::kOp)) return false;  // a header
    const Op kind = find_op();
    ++operations_;
    op = StreamOp{};
    op.kind = kOps[static_cast<std::size_t>(kind)].kind;
    common(op, kOps[static_cast<std::size_t>(kind)].name);
    return translate(kind, op);
  } catch (const JsonError& error) {
    throw InputError(file_, line, error.what());
  }
}

void StreamLogReader::scan() {
  for (; seen_ != 0; seen_ &= seen_ - 1) {
    values_[static_cast<std::size_t>(std::countr_zero(seen_))] = JsonValue{};
  }
  scan_.open('{');
  std::string_view text;
  while (scan_.next_key(text)) {
    const Key key = find_key(text);
    if (key == Key::kNone) {
      scan_.value();
      continue;
    }
    JsonValue& value = values_[static_cast<std::size_t>(key)];
    if (value) scan_.expected("\"" + std::string(text) + "\" once");
    seen_ |= 1u << static_cast<unsigned>(key);
    value = scan_.value();
  }
  scan_.finish();
}

StreamLogReader::Op StreamLogReader::find_op() {
  const JsonValue& value = at(Key::kOp, "the name of an operation");
  if (value.kind == JsonValue::Kind::kText) {
    for (std::size_t i = 0; i < std::size(kOps); ++i) {
      if (kOps[i].name == value.text) return static_cast<Op>(i);
    }
  }
  std::vector<std::string_view> names;
  for (const OpName& each : kOps) names.push_back(each.name);
  expected(Key::kOp, list(names));
}

// Reads the keys that any line may have.
void StreamLogReader::common(StreamOp& op, std::string_view op_name) {
  op.thread = HostThread{};
  if (find(Key::kThread)) op.thread = HostThread{id(Key::kThread, threads_)};
  seen_threads_.see(text(op.thread));
  graph(op);
  if (find(Key::kDevice)) op.device = static_cast<std::uint32_t>(number(Key::kDevice, 0xffff'ffff));
  const JsonValue& name = find(Key::kName);
  const JsonValue& where = find(Key::kWhere);
  if (name && name.kind != JsonValue::Kind::kText) expected(Key::kName, "a string");
  check_length(Key::kName, name.text);
  if (!where) {
    op.name = name.text;
    return;
  }
  if (where.kind != JsonValue::Kind::kText) expected(Key::kWhere, "a string");
  check_length(Key::kWhere, where.text);
  label_.assign(name.text.empty() ? op_name : name.text).append(" at ").append(where.text);
  op.name = label_;
}

bool StreamLogReader::translate(Op kind, StreamOp& op) {
  const auto stream = [&] { op.stream = StreamId{id(Key::kStream, streams_, &seen_streams_)}; };
  const auto event = [&] { op.event = EventId{id(Key::kEvent, events_)}; };
  switch (kind) {
    case Op::kStream:
      op.stream = StreamId{id(Key::kId, streams_, &seen_streams_)};
      op.stream_kind = static_cast<StreamKind>(choice(Key::kKind, kStreamKinds));
      return true;
    case Op::kKernel:
    case Op::kHostFunc:
      stream();
      accesses(op, kind == Op::kKernel);
      return true;
    case Op::kCopy:
    case Op::kMemset:
      stream();
      kind == Op::kCopy ? copy(op) : memset(op);
      return true;
    case Op::kRecord:
    case Op::kWait:
      event();
      stream();
      return true;
    case Op::kEventSync:
      event();
      return true;
    case Op::kEventDestroy:
      event();
      destroyed_ = static_cast<std::uint32_t>(op.event);
      return true;
    case Op::kStreamSync:
    case Op::kStreamDestroy:
      stream();
      return true;
    case Op::kEventQuery:
      event();
      return choice(Key::kResult, kResults) == 1;
    case Op::kStreamQuery:
      stream();
      return choice(Key::kResult, kResults) == 1;
    case Op::kAlloc:
    case Op::kFree:
      stream();
      memory(op);
      return true;
    case Op::kRecordUse:
      stream();
      op.range = buffer(Key::kBuffer, at(Key::kBuffer, kBufferText));
      op.until_event = static_cast<bool>(find(Key::kEvent));
      if (op.until_event) event();
      return true;
    case Op::kHostRead:
    case Op::kHostWrite:
    case Op::kHostView:
    case Op::kHostViewEnd:
      op.range = buffer(Key::kBuffer, at(Key::kBuffer, kBufferText));
      return true;
    case Op::kRelease:
    case Op::kAcquire:
      op.token = HostToken{id(Key::kToken, tokens_)};
      op.in_stream = static_cast<bool>(find(Key::kStream));
      if (op.in_stream) stream();
      return true;
    case Op::kDeviceSync:
      return true;
  }
  return false;
}

// A buffer in both lists counts as written. Long lists are sorted, so that searching is fast.
void StreamLogReader::accesses(StreamOp& op, bool required) {
  buffers(Key::kReads, reads_, required);
  buffers(Key::kWrites, writes_, required);
  constexpr std::size_t kFew = 8;
  if (writes_.size() <= kFew) {
    std::erase_if(reads_, [&](const Range& read) {
      return std::find(writes_.begin(), writes_.end(), read) != writes_.end();
    });
  } else {
    const auto before = [](const Range& a, const Range& b) {
      return std::pair(a.address, a.bytes) < std::pair(b.address, b.bytes);
    };
    sorted_ = writes_;
    std::sort(sorted_.begin(), sorted_.end(), before);
    std::erase_if(reads_, [&](const Range& read) {
      return std::binary_search(sorted_.begin(), sorted_.end(), read, before);
    });
  }
  op.reads = reads_;
  op.writes = writes_;
}

void StreamLogReader::copy(StreamOp& op) {
  writes_.assign(1, buffer(Key::kDst, at(Key::kDst, kBufferText)));
  reads_.assign(1, buffer(Key::kSrc, at(Key::kSrc, kBufferText)));
  if (reads_ == writes_) reads_.clear();
  op.reads = reads_;
  op.writes = writes_;
  const std::size_t from = choice(Key::kSrcKind, kMemoryKinds);
  const std::size_t to = choice(Key::kDstKind, kMemoryKinds);
  // Any copy to host memory counts as kDeviceToHost; the checkers need no finer distinction.
  op.copy = to != kDevice     ? CopyKind::kDeviceToHost
            : from != kDevice ? CopyKind::kHostToDevice
                              : CopyKind::kDeviceToDevice;
  const bool sync = choice(Key::kApi, kApis, 0) == 1;
  const bool blocked = flag(Key::kBlocked);
  if (sync || blocked) op.host_order = copy_order(from, to);
}

// A memset returns at once, unless its target is page-locked.
void StreamLogReader::memset(StreamOp& op) {
  writes_.assign(1, buffer(Key::kDst, at(Key::kDst, kBufferText)));
  op.writes = writes_;
  const bool pinned = choice(Key::kDstKind, kMemoryKinds, kDevice) == kPinned;
  const bool sync = choice(Key::kApi, kApis, 0) == 1;
  const bool blocked = flag(Key::kBlocked);
  if ((sync && pinned) || blocked) op.host_order = HostOrder::kDone;
}

void StreamLogReader::memory(StreamOp& op) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  const std::uint64_t address = number(Key::kAddress, kMost);
  op.range = range(Key::kAddress, address, number(Key::kBytes, kMost));
  seen_buffers_.see(op.range);
  op.pool = static_cast<PoolKind>(choice(Key::kPool, kPools));
}

void StreamLogReader::expected(Key key, std::string_view what) const {
  const JsonValue& value = find(key);
  std::string text = "expected \"" + std::string(key_name(key)) + "\": " + std::string(what);
  if (value.kind == JsonValue::Kind::kText) {
    text.append(", not \"").append(value.text).append("\"");
  } else if (value) {
    text.append(", not ").append(value.text.substr(0, 40));
  }
  throw JsonError(text);
}

const JsonValue& StreamLogReader::at(Key key, std::string_view what) const {
  const JsonValue& value = find(key);
  if (!value) expected(key, what);
  return value;
}

std::uint32_t StreamLogReader::id(Key key, NameIds& names, Distinct* seen) const {
  const JsonValue& value = at(key, kIdText);
  const bool text = value.kind == JsonValue::Kind::kText;
  if (!text && value.kind != JsonValue::Kind::kInteger) expected(key, kIdText);
  check_length(key, value.text);
  const std::string_view name = !text && value.magnitude == 0 ? "0" : value.text;
  const std::size_t known = names.size();
  const std::uint32_t id = names.intern(name);
  if (seen != nullptr && names.size() != known) seen->see(name);
  return id;
}

void StreamLogReader::check_length(Key key, std::string_view text) const {
  if (text.size() <= limits::kNameBytes) return;
  throw JsonError("expected \"" + std::string(key_name(key)) + "\": at most " +
                  std::to_string(limits::kNameBytes) + " bytes");
}

std::uint64_t StreamLogReader::number(Key key, std::uint64_t most) const {
  constexpr std::string_view kWhat = "an integer of at least 0";
  const JsonValue& value = at(key, kWhat);
  const bool negative = value.negative && value.magnitude != 0;
  if (value.kind != JsonValue::Kind::kInteger || negative) expected(key, kWhat);
  if (value.magnitude > most) expected(key, "at most " + std::to_string(most));
  return value.magnitude;
}

bool StreamLogReader::flag(Key key) const {
  const JsonValue& value = find(key);
  if (value && value.kind != JsonValue::Kind::kTrue && value.kind != JsonValue::Kind::kFalse) {
    expected(key, "true or false");
  }
  return value.kind == JsonValue::Kind::kTrue;
}

std::size_t StreamLogReader::choice(Key key, std::span<const std::string_view> words,
                                    int otherwise) const {
  const JsonValue& value = find(key);
  if (!value && otherwise >= 0) return static_cast<std::size_t>(otherwise);
  if (value.kind == JsonValue::Kind::kText) {
    const auto known = std::find(words.begin(), words.end(), value.text);
    if (known != words.end()) return static_cast<std::size_t>(known - words.begin());
  }
  expected(key, list(words));
}

Range StreamLogReader::range(Key key, std::uint64_t address, std::uint64_t bytes) const {
  if (address > kNamedBuffers || bytes > kNamedBuffers - address) {
    expected(key, "bytes that end below address " + std::to_string(kNamedBuffers) + " (2^59)");
  }
  return {address, bytes};
}

Range StreamLogReader::buffer(Key key, const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kText) {
    check_length(key, value.text);
    const std::size_t known = buffers_.size();
    const std::uint32_t id = buffers_.intern(value.text);
    if (buffers_.size() != known) seen_buffers_.see(value.text);
    return named(id);
  }
  if (value.kind != JsonValue::Kind::kObject) expected(key, kBufferText);
  JsonValue address, bytes;
  scan_.enter(value.text);
  scan_.open('{');
  std::string_view name;
  while (scan_.next_key(name)) {
    JsonValue* into = name == "address" ? &address : name == "bytes" ? &bytes : nullptr;
    const JsonValue found = scan_.value();
    if (into == nullptr) continue;
    const bool negative = found.negative && found.magnitude != 0;
    if (*into || found.kind != JsonValue::Kind::kInteger || negative) expected(key, kBufferText);
    *into = found;
  }
  if (!address || !bytes) expected(key, kBufferText);
  const Range found = range(key, address.magnitude, bytes.magnitude);
  seen_buffers_.see(found);
  return found;
}

void StreamLogReader::buffers(Key key, std::vector<Range>& into, bool required) {
  constexpr std::string_view kWhat = "a list of buffers";
  into.clear();
  if (!required && !find(key)) return;
  const JsonValue& value = at(key, kWhat);
  if (value.kind != JsonValue::Kind::kArray) expected(key, kWhat);
  scan_.enter(value.text);
  scan_.open('[');
  while (scan_.next_element()) into.push_back(buffer(key, scan_.value()));
}

std::string StreamLogReader::text(Range buffer) const {
  if (buffer.address < kNamedBuffers) return {};
  return buffers_.text(static_cast<std::uint32_t>((buffer.address - kNamedBuffers) / 2));
}

}  // namespace ferry
