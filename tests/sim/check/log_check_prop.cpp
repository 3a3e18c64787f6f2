// Compares `ferry check` with a literal reading of the rules in formats/STREAM_LOG.md: "comes
// before" as plain sets of accesses, for streams, events, host threads and tokens; no clocks, no
// ranges, no ids.
#include "sim/check/log_check.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::check {
namespace {

using Draw = std::array<std::uint8_t, 8>;
constexpr std::size_t kLines = 160;
// Every line makes at most two accesses happen: on the host (2n) and on a stream (2n + 1).
using Set = std::bitset<2 * kLines>;
// Kind, earlier line, later line; and on how many buffers.
using Verdict = std::tuple<std::string, std::uint64_t, std::uint64_t>;
using Verdicts = std::map<Verdict, std::uint64_t>;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// What an op does, for the text and for the oracle.
struct Line {
  std::string op, stream, event, token, thread, kind;
  std::vector<std::string> reads, writes;
  std::string src_kind, dst_kind;
  unsigned device = 0;
  bool sync = false, done = false;

  std::string text(std::size_t number) const {
    std::string out = "{\"op\":" + quoted(op) + ",\"name\":" + quoted(std::to_string(number));
    const auto add = [&](const std::string& key, const std::string& value) {
      if (!value.empty()) out += "," + quoted(key) + ":" + quoted(value);
    };
    const auto list = [&](const std::string& key, const std::vector<std::string>& names) {
      out += "," + quoted(key) + ":[";
      for (std::size_t i = 0; i < names.size(); ++i) out += (i ? "," : "") + quoted(names[i]);
      out += "]";
    };
    add(op == "stream" ? "id" : "stream", stream);
    add("event", event);
    add("token", token);
    add("thread", thread);
    add("kind", kind);
    if (op == "kernel" || op == "host_func") {
      list("reads", reads);
      list("writes", writes);
    } else if (op == "copy") {
      add("src", reads[0]);
      add("dst", writes[0]);
      add("src_kind", src_kind);
      add("dst_kind", dst_kind);
      add("api", sync ? "sync" : "async");
    } else if (op == "memset") {
      add("dst", writes[0]);
    } else if (op == "host_read" || op == "host_write") {
      add("buffer", op == "host_read" ? reads[0] : writes[0]);
    } else if (op == "event_query" || op == "stream_query") {
      add("result", done ? "done" : "not_ready");
    }
    return out + ",\"device\":" + std::to_string(device) + "}";
  }
};

// Most lines access something; every op comes up.
Line decode(const Draw& d) {
  static const std::vector<std::string> kOps = {
      "stream",      "stream_destroy", "event_destroy", "event_sync", "stream_sync", "device_sync",
      "event_query", "stream_query",   "release",       "acquire",    "release",     "acquire",
      "record",      "wait",           "record",        "wait",       "record",      "wait",
      "copy",        "copy",           "memset",        "host_func",  "host_read",   "host_write",
      "kernel",      "kernel",         "kernel",        "kernel",     "kernel",      "kernel",
  };
  static const std::array<std::string, 3> kMemory = {"device", "pinned", "pageable"};
  static const std::array<std::string, 3> kKinds = {"nonblocking", "blocking", "legacy"};
  const auto buffer = [](unsigned draw) {
    return std::string(1, static_cast<char>('w' + draw % 4));
  };
  Line line;
  line.op = kOps[d[0] % kOps.size()];
  line.thread = d[1] % 4 < 2 ? "" : d[1] % 4 == 2 ? "t" : "u";
  const auto on_stream = [&] { line.stream = std::string(1, static_cast<char>('a' + d[2] % 4)); };
  const auto on_event = [&] { line.event = std::to_string(d[3] % 3); };
  if (line.op == "stream") {
    on_stream();
    line.kind = kKinds[d[3] % 3];
    line.device = d[4] % 4 == 0;
  } else if (line.op == "record" || line.op == "wait") {
    on_stream();
    on_event();
  } else if (line.op == "event_sync" || line.op == "event_query" || line.op == "event_destroy") {
    on_event();
  } else if (line.op == "release" || line.op == "acquire") {
    line.token = std::to_string(d[3] % 2);
  } else if (line.op == "device_sync") {
    line.device = d[4] % 4 == 0;
  } else if (line.op == "host_read") {
    line.reads = {buffer(d[5])};
  } else if (line.op == "host_write") {
    line.writes = {buffer(d[5])};
  } else {
    on_stream();
  }
  line.done = d[4] % 2 == 0;
  if (line.op == "kernel" || line.op == "host_func") {
    for (unsigned i = 0; i < d[4] % 3u; ++i) line.reads.push_back(buffer(d[5] + i * 3u));
    for (unsigned i = 0; i < d[6] % 3u; ++i) line.writes.push_back(buffer(d[7] + i * 2u));
  } else if (line.op == "copy" || line.op == "memset") {
    line.reads = {buffer(d[5])};
    line.writes = {buffer(d[5] + 1u + d[6] % 3u)};
    line.src_kind = kMemory[d[4] % 3];
    line.dst_kind = kMemory[d[7] % 3];
    line.sync = d[3] % 2 == 0;
    if (line.op == "memset") line.reads.clear();
  }
  return line;
}

class Oracle {
 public:
  Verdicts verdicts;

  void operator()(const Line& line, std::size_t number) {
    now_ = number;
    Set& host = threads_[line.thread];
    const std::string& op = line.op;
    if (op == "kernel" || op == "host_func" || op == "memset" || op == "copy") {
      work(line, host);
    } else if (op == "host_read" || op == "host_write") {
      access("thread " + line.thread, 2 * now_, host, line.reads, line.writes, true, false);
    } else if (op == "record") {
      events_[line.event] = issue(line.stream, host);
    } else if (op == "wait") {
      issue(line.stream, host) |= event(line.event);
    } else if (op == "event_sync" || (op == "event_query" && line.done)) {
      host |= event(line.event);
    } else if (op == "stream_sync" || (op == "stream_query" && line.done)) {
      host |= issue(line.stream, host);
    } else if (op == "device_sync") {
      for (const auto& each : all_) {
        if (each.device == line.device) host |= each.past;
      }
      synchronised_ |= host;
    } else if (op == "release") {
      tokens_[line.token] = host;
    } else if (op == "acquire") {
      if (tokens_.contains(line.token)) host |= tokens_[line.token];
    } else if (op == "event_destroy") {
      events_.erase(line.event);
    } else if (op == "stream_destroy") {
      destroy(line.stream);
    } else if (op == "stream") {
      declare(line);
    }
  }

 private:
  struct Stream {
    Set past;
    std::string kind = "nonblocking";
    unsigned device = 0;
    bool declared = false, destroyed = false;
    std::size_t destroyed_on = 0;
  };
  struct Access {
    std::size_t line = 0, access = 0;  // line 0: none
    bool copy = false;
  };
  struct Buffer {
    Access write;
    std::map<std::string, Access> reads;  // by stream or thread
  };

  std::size_t number_of(const std::string& name) {
    const auto [found, fresh] = names_.try_emplace(name, all_.size());
    if (fresh) all_.emplace_back();
    return found->second;
  }
  Set event(const std::string& name) const {
    const auto found = events_.find(name);
    return found == events_.end() ? Set() : found->second;
  }

  Set& issue(const std::string& name, const Set& host) {
    Stream& stream = all_[number_of(name)];
    if (stream.destroyed) {
      verdicts[{"use of a destroyed stream", stream.destroyed_on, now_}] = 1;
    }
    stream.past |= host;
    for (const Stream& other : all_) {
      if (other.device != stream.device || other.kind == "nonblocking") continue;
      if (stream.kind == "legacy") stream.past |= other.past;
      if (stream.kind == "blocking" && other.kind == "legacy") stream.past |= other.past;
    }
    return stream.past;
  }

  void declare(const Line& line) {
    const bool known = names_.contains(line.stream);
    if (known && all_[number_of(line.stream)].destroyed) names_.erase(line.stream);
    const bool fresh = !names_.contains(line.stream);
    Stream& stream = all_[number_of(line.stream)];
    if (fresh) stream.past = synchronised_;
    if (stream.declared) return;
    stream.declared = true;
    stream.kind = line.kind;
    stream.device = line.device;
  }
  void destroy(const std::string& name) {
    Stream& stream = all_[number_of(name)];
    if (stream.destroyed) {
      verdicts[{"use of a destroyed stream", stream.destroyed_on, now_}] = 1;
      return;
    }
    stream.destroyed = true;
    stream.destroyed_on = now_;
  }

  void work(const Line& line, Set& host) {
    const std::string actor = "stream " + std::to_string(number_of(line.stream));
    const bool copy = line.op == "copy";
    const bool to_host = copy && line.dst_kind != "device";
    std::vector<std::string> reads = line.reads;
    std::erase_if(reads, [&](const std::string& read) {
      return std::find(line.writes.begin(), line.writes.end(), read) != line.writes.end();
    });
    const bool waits = copy && line.sync;
    if (waits && line.src_kind == "pageable" && line.dst_kind == "device") {
      host |= issue(line.stream, host);
      access("thread " + line.thread, 2 * now_, host, reads, {}, to_host, true);
      access(actor, 2 * now_ + 1, issue(line.stream, host), {}, line.writes, to_host, true);
      return;
    }
    Set& past = issue(line.stream, host);
    access(actor, 2 * now_ + 1, past, reads, line.writes, to_host, copy);
    if (waits && (line.src_kind != "device" || line.dst_kind != "device")) host |= past;
  }

  void access(const std::string& actor, std::size_t number, Set& past,
              const std::vector<std::string>& reads, const std::vector<std::string>& writes,
              bool host_memory, bool copy) {
    const auto note = [&](const std::string& kind, const Access& earlier) {
      if (earlier.line == 0 || earlier.line == now_ || past[earlier.access]) return;
      const bool rewrite = kind != "read after write" && host_memory && earlier.copy;
      verdicts[{rewrite ? "rewrite under a copy" : kind, earlier.line, now_}]++;
    };
    const Access self{now_, number, copy};
    for (const std::string& name : reads) {
      Buffer& buffer = buffers_[name];
      if (!buffer.reads.contains(actor)) note("read after write", buffer.write);
      buffer.reads[actor] = self;
    }
    for (const std::string& name : writes) {
      Buffer& buffer = buffers_[name];
      for (const auto& read : buffer.reads) note("write after read", read.second);
      if (buffer.reads.empty()) note("write after write", buffer.write);
      buffer.reads.clear();
      buffer.write = self;
    }
    past.set(number);
  }

  std::size_t now_ = 0;
  std::map<std::string, std::size_t> names_;
  std::vector<Stream> all_;  // destroyed ones, too: their work goes on
  std::map<std::string, Set> threads_, events_, tokens_;
  Set synchronised_;
  std::map<std::string, Buffer> buffers_;
};

// A new thread in a log counts as made by a thread that the log knows (STREAM_LOG.md). Here all
// threads are there from the beginning.
std::vector<Line> beginning(bool one_thread) {
  std::vector<Line> lines;
  for (const char* thread : {"", "t", "u"}) {
    if (one_thread && !lines.empty()) break;
    Line line;
    line.op = "release";
    line.token = "none";
    line.thread = thread;
    lines.push_back(std::move(line));
  }
  return lines;
}

Verdicts verdicts_of(const std::string& text, std::size_t many) {
  std::istringstream in(text);
  LineSource lines(in, "log");
  Verdicts found;
  for (const LogViolation& v : check_log(lines, {.many = many}).violations) {
    found[{std::string(name(v.kind)), v.previous_line, v.line}] += v.count;
  }
  return found;
}

// Whether the checkers forget whatever they can after each line, or nothing.
void check(const std::vector<Draw>& draws, bool one_thread) {
  std::vector<Line> log = beginning(one_thread);
  for (std::size_t i = 0; i < draws.size() && log.size() < kLines - 2; ++i) {
    log.push_back(decode(draws[i]));
    if (one_thread) log.back().thread.clear();
  }
  Oracle oracle;
  std::string text;
  for (std::size_t i = 0; i < log.size(); ++i) {
    oracle(log[i], i + 1);
    text += log[i].text(i + 1) + "\n";
  }
  for (const std::size_t many : {std::size_t{0}, ~std::size_t{0} / 4}) {
    const Verdicts found = verdicts_of(text, many);
    if (found != oracle.verdicts) RC_LOG() << text;
    RC_ASSERT(found == oracle.verdicts);
  }
}

TEST(LogCheckProp, IsTheRulesAtTheirWord) {
  EXPECT_TRUE(rc::check("the checkers and the sets give the same verdicts", [] {
    const auto log = rc::gen::container<std::vector<Draw>>(rc::gen::arbitrary<Draw>());
    const auto logs =
        *rc::gen::resize(150, rc::gen::container<std::vector<std::vector<Draw>>>(8, log));
    for (const std::vector<Draw>& draws : logs) {
      check(draws, false);
      check(draws, true);
    }
  }));
}

}  // namespace
}  // namespace ferry::check
