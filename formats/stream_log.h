// Reads the stream log of any program as stream operations. formats/STREAM_LOG.md says what each
// line means.
//
// Each line gives one operation, in the order of the lines. Memory grows with the names that are in
// use at a time (streams, events that are not destroyed, buffers, tokens, threads), not with the
// number of lines: the user calls forget_…_if for names that are not needed any more. Ids are given
// in the order of first use. The reader decides what a call means for the host (a synchronous copy,
// a successful query), so the checkers see only orders and accesses.
//
// Buffers with names get addresses above all addresses of the log.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/distinct.h"
#include "formats/json_scan.h"
#include "formats/name_ids.h"
#include "formats/stream_op.h"

namespace ferry {

// The addresses of a log end here, and those of named buffers begin here.
inline constexpr std::uint64_t kNamedBuffers = std::uint64_t{1} << 59;

class StreamLogReader {
 public:
  explicit StreamLogReader(std::string file) : file_(std::move(file)) { threads_.intern(""); }

  // Returns false for a line that orders and touches nothing (a blank line, a query that was not
  // ready, the header of a hazard). Throws InputError with the line and what was expected. The op's
  // spans and name are valid until the next call.
  bool read(std::string_view text, std::uint64_t line, StreamOp& op);

  const std::string& text(StreamId id) const {
    return streams_.text(static_cast<std::uint32_t>(id));
  }
  // Empty for the default thread: that of lines without "thread".
  const std::string& text(HostThread id) const {
    return threads_.text(static_cast<std::uint32_t>(id));
  }
  const std::string& text(HostToken id) const {
    return tokens_.text(static_cast<std::uint32_t>(id));
  }
  // The name of a named buffer; empty for other buffers.
  std::string text(Range buffer) const;

  // Calls f for each event, token or stream that is known. If f returns true, the name is
  // forgotten: its id can be used again, and if the name comes again, it is a new one.
  template <class F>
  void forget_events_if(F&& f) {
    forget_if<EventId>(events_, f);
  }
  template <class F>
  void forget_tokens_if(F&& f) {
    forget_if<HostToken>(tokens_, f);
  }
  template <class F>
  void forget_streams_if(F&& f) {
    forget_if<StreamId>(streams_, f);
  }
  // The same for named buffers; calls f with the range of each.
  template <class F>
  void forget_buffers_if(F&& f) {
    std::vector<std::uint32_t> gone;
    buffers_.each([&](std::uint32_t id) {
      if (f(named(id))) gone.push_back(id);
    });
    for (const std::uint32_t id : gone) buffers_.erase(id);
  }
  // The number of names that could be forgotten.
  std::size_t names() const {
    return events_.size() + tokens_.size() + streams_.size() + buffers_.size();
  }

  // The number of operations read so far.
  std::uint64_t operations() const { return operations_; }
  const Distinct& streams() const { return seen_streams_; }
  const Distinct& threads() const { return seen_threads_; }
  const Distinct& buffers() const { return seen_buffers_; }

 private:
  // The keys that have a meaning in some operation.
  enum class Key : std::uint8_t {
    kOp,
    kStream,
    kEvent,
    kId,
    kKind,
    kDevice,
    kReads,
    kWrites,
    kSrc,
    kDst,
    kSrcKind,
    kDstKind,
    kApi,
    kBlocked,
    kResult,
    kAddress,
    kBytes,
    kPool,
    kBuffer,
    kToken,
    kThread,
    kName,
    kWhere,
    kFerry,
    kGraph,
    kGraphPool,
    kNode,
    kCaptured,
    kNone,
  };
  static constexpr std::size_t kKeys = static_cast<std::size_t>(Key::kNone);
  enum class Op : std::uint8_t;
  struct OpName;
  static const OpName kOps[];
  static Key find_key(std::string_view text);
  static std::string_view key_name(Key key);

  template <class Id, class F>
  static void forget_if(NameIds& names, F&& f) {
    std::vector<std::uint32_t> gone;
    names.each([&](std::uint32_t id) {
      if (f(Id{id})) gone.push_back(id);
    });
    for (const std::uint32_t id : gone) names.erase(id);
  }

  void scan();
  Op find_op();
  bool translate(Op kind, StreamOp& op);
  void common(StreamOp& op, std::string_view op_name);
  void graph(StreamOp& op);
  void copy(StreamOp& op);
  void memset(StreamOp& op);
  void accesses(StreamOp& op, bool required);
  void memory(StreamOp& op);

  [[noreturn]] void expected(Key key, std::string_view what) const;
  const JsonValue& find(Key key) const { return values_[static_cast<std::size_t>(key)]; }
  const JsonValue& at(Key key, std::string_view what) const;
  void check_length(Key key, std::string_view text) const;
  std::uint32_t id(Key key, NameIds& names, Distinct* seen = nullptr) const;
  static Range named(std::uint32_t id) {
    return {kNamedBuffers + std::uint64_t{2} * id, 1};  // with gaps, so that two never touch
  }
  std::uint64_t number(Key key, std::uint64_t most) const;
  bool flag(Key key) const;
  // Returns the index of the key's value among `words`. If the key is missing, returns `otherwise`,
  // or throws if that is negative.
  std::size_t choice(Key key, std::span<const std::string_view> words, int otherwise = -1) const;
  Range range(Key key, std::uint64_t address, std::uint64_t bytes) const;
  Range buffer(Key key, const JsonValue& value);
  void buffers(Key key, std::vector<Range>& into, bool required);

  std::string file_;
  JsonScan scan_;
  std::array<JsonValue, kKeys> values_;
  std::uint32_t seen_ = 0;  // a bit for each key that the line has
  NameIds streams_, events_, tokens_, threads_, buffers_, graphs_, graph_pools_;
  std::vector<Range> reads_, writes_;
  std::vector<Range> sorted_;
  std::uint64_t operations_ = 0;
  Distinct seen_streams_, seen_threads_, seen_buffers_;
  std::string label_;
  std::uint32_t destroyed_ = NameIds::kNone;  // the event that the previous line destroyed
};

}  // namespace ferry
