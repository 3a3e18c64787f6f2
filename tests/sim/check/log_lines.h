// The tests of the trace checker write logs in short, and compare their verdict as one line.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "formats/line_source.h"
#include "sim/check/log_check.h"

namespace ferry::test {

// The logs of the tables are short: W(x) on s is `W s x`. One op a line:
//   R s x | W s x      a kernel on stream s reads, writes buffer x
//   HR x | HW x        the host does
//   HV x | HE x        the host is given a view of x | a view of x ends
//   +e s | -e s        record e on s | s waits for e
//   release t | acquire t [s]   the host's, or a host function's on s
//   anything that begins with { is a line as it stands
// `@t` in front: on host thread t. Buffers in capital letters are 16 bytes at their letter × 1000.
inline std::string buffer(const std::string& name) {
  if (name[0] < 'A' || name[0] > 'Z') return '"' + name + '"';
  return "{\"address\":" + std::to_string((name[0] - 'A' + 1) * 1000) + ",\"bytes\":16}";
}

inline std::string line_of(const std::string& text) {
  if (text.empty() || text[0] == '{') return text;
  std::istringstream in(text);
  std::string thread, what, on, with;
  in >> what;
  if (what[0] == '@') {
    thread = ",\"thread\":\"" + what.substr(1) + "\"";
    in >> what;
  }
  in >> on >> with;
  const std::string stream = "\"stream\":\"" + on + "\"";
  const auto op = [&](const std::string& name, const std::string& rest) {
    return "{\"op\":\"" + name + "\"," + rest + thread + "}";
  };
  if (what == "R") return op("kernel", stream + ",\"reads\":[" + buffer(with) + "],\"writes\":[]");
  if (what == "W") return op("kernel", stream + ",\"reads\":[],\"writes\":[" + buffer(with) + "]");
  if (what == "HR") return op("host_read", "\"buffer\":" + buffer(on));
  if (what == "HW") return op("host_write", "\"buffer\":" + buffer(on));
  if (what == "HV") return op("host_view", "\"buffer\":" + buffer(on));
  if (what == "HE") return op("host_view_end", "\"buffer\":" + buffer(on));
  if (what == "release" || what == "acquire") {
    return op(what,
              "\"token\":\"" + on + "\"" + (with.empty() ? "" : ",\"stream\":\"" + with + "\""));
  }
  if (what == "sync" || what == "destroy") return op("stream_" + what, stream);
  if (what == "device_sync") return op(what, "\"device\":" + (on.empty() ? "0" : on));
  if (what == "use") return op("record_use", stream + ",\"buffer\":" + buffer(with));
  if (what == "alloc" || what == "free") {
    std::string pool = "caching";
    in >> pool;
    const std::string range = buffer(with);
    return op(what,
              stream + "," + range.substr(1, range.size() - 2) + ",\"pool\":\"" + pool + "\"");
  }
  if (what[0] == '+') return op("record", "\"event\":\"" + what.substr(1) + "\"," + stream);
  if (what[0] == '-') return op("wait", "\"event\":\"" + what.substr(1) + "\"," + stream);
  return "unknown: " + text;
}

inline check::LogReport report_of(const std::vector<std::string>& log, bool leaks = false) {
  std::string text;
  for (const std::string& each : log) text += line_of(each) + "\n";
  std::istringstream in(text);
  LineSource lines(in, "log");
  return check::check_log(lines, leaks);
}

// "kind previous→line", "xN" where it was seen N times.
inline std::string found(const std::vector<std::string>& log, bool leaks = false) {
  std::string all;
  for (const check::LogViolation& v : report_of(log, leaks).violations) {
    if (!all.empty()) all += "; ";
    all += std::string(name(v.kind)) + " " + std::to_string(v.previous_line) + "→" +
           std::to_string(v.line);
    if (v.count > 1) all += " x" + std::to_string(v.count);
  }
  return all;
}

struct TraceCase {
  std::vector<std::string> log;
  std::string verdict;
};

inline void judge(const std::vector<TraceCase>& cases) {
  for (const TraceCase& each : cases) {
    std::string text;
    for (const std::string& line : each.log) text += line + "\n";
    EXPECT_EQ(found(each.log), each.verdict) << text;
  }
}

inline const std::string kLegacy = R"({"op":"stream","id":"0","kind":"legacy"})";
inline std::string declare(const std::string& id, const std::string& kind, int device = 0) {
  return "{\"op\":\"stream\",\"id\":\"" + id + "\",\"kind\":\"" + kind +
         "\",\"device\":" + std::to_string(device) + "}";
}
// A copy on stream s from x to y.
inline std::string transfer(const std::string& from, const std::string& to,
                            const std::string& more = "") {
  const auto side = [](const std::string& what, const std::string& place) {
    const std::string kind = place.substr(0, place.find(' '));
    return ",\"" + what + "\":" + buffer(place.substr(kind.size() + 1)) + ",\"" + what +
           "_kind\":\"" + kind + "\"";
  };
  return "{\"op\":\"copy\",\"stream\":\"s\"" + side("src", from) + side("dst", to) + more + "}";
}

}  // namespace ferry::test
