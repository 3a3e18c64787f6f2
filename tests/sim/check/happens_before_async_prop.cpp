// The stream-ordered allocator's rules taken at their word: "comes before" as plain sets of lines,
// for a block that is handed out, used and freed on any stream.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using Draw = std::array<std::uint8_t, 3>;
constexpr std::size_t kLines = 64;
using Set = std::bitset<kLines + 1>;
using Verdicts = std::set<std::tuple<std::string, std::size_t, std::size_t>>;

class Oracle {
 public:
  Verdicts verdicts;
  std::vector<std::string> log;

  // Draws that make no sense, a use of what is not allocated say, are no lines.
  void operator()(const Draw& d) {
    const std::string s(1, static_cast<char>('a' + d[1] % 3));
    const std::string event = std::to_string(d[2] % 2);
    now_ = log.size() + 1;
    switch (d[0] % 8) {
      case 0:
        if (!live_) alloc(s);
        return;
      case 1:
        if (live_) free(s);
        return;
      case 2:
        if (live_ && s != owner_) uses_.insert(s);
        if (live_) log.push_back("use " + s + " X");
        return;
      case 3:
        events_[event] = past_[s];
        return log.push_back("+" + event + " " + s);
      case 4:
        past_[s] |= events_[event];
        return log.push_back("-" + event + " " + s);
      case 5:
        if (live_) write(s);
        return;
      default:
        if (live_) read(s);
    }
  }

 private:
  void step(const std::string& what, const std::string& s) {
    log.push_back(what);
    past_[s].set(now_);
  }
  void found(const std::string& kind, std::size_t earlier) {
    verdicts.emplace(kind, earlier, now_);
  }
  bool after(const std::string& s, std::size_t line) const {
    return line == 0 || past_.at(s)[line];
  }

  void alloc(const std::string& s) {
    live_ = true;
    owner_ = s;
    uses_.clear();
    reads_.clear();
    write_ = allocated_ = now_;
    step("alloc " + s + " X async", s);
  }
  void free(const std::string& s) {
    Set past = past_[s];
    for (const std::string& use : uses_) past |= past_[use];
    for (const auto& [stream, line] : reads_) {
      if (!past[line]) found("free under a use", line);
    }
    if (!past[write_]) found("free under a use", write_);
    live_ = false;
    step("free " + s + " X async", s);
  }
  void read(const std::string& s) {
    past_[s];
    if (!after(s, write_) && !reads_.contains(s)) {
      found(write_ == allocated_ ? "use before the allocation" : "read after write", write_);
    }
    reads_[s] = now_;
    step("R " + s + " X", s);
  }
  void write(const std::string& s) {
    past_[s];
    for (const auto& [stream, line] : reads_) {
      if (!after(s, line)) found("write after read", line);
    }
    const bool fresh = write_ == allocated_;
    if (!after(s, write_) && (fresh || reads_.empty())) {
      found(fresh ? "use before the allocation" : "write after write", write_);
    }
    reads_.clear();
    write_ = now_;
    step("W " + s + " X", s);
  }

  std::size_t now_ = 0;
  bool live_ = false;
  std::string owner_;
  std::set<std::string> uses_;
  std::size_t allocated_ = 0, write_ = 0;
  std::map<std::string, std::size_t> reads_;  // since the write, by stream
  std::map<std::string, Set> past_, events_;
};

void check(const std::vector<Draw>& draws) {
  Oracle oracle;
  for (const Draw& draw : draws) {
    if (oracle.log.size() < kLines) oracle(draw);
  }
  std::string text;
  for (std::size_t i = 0; i < oracle.log.size(); ++i) {
    std::string line = test::line_of(oracle.log[i]);
    line.insert(line.size() - 1, ",\"name\":\"" + std::to_string(i) + "\"");  // a place of its own
    text += line + "\n";
  }
  for (const std::size_t many : {std::size_t{0}, std::size_t{4096}}) {
    std::istringstream in(text);
    LineSource lines(in, "log");
    Verdicts found;
    for (const LogViolation& v : check_log(lines, {.many = many}).violations) {
      found.emplace(name(v.kind), v.previous_line, v.line);
    }
    if (found != oracle.verdicts) RC_LOG() << text;
    RC_ASSERT(found == oracle.verdicts);
  }
}

TEST(HappensBeforeAsyncProp, IsTheRulesAtTheirWord) {
  EXPECT_TRUE(rc::check("the checkers and the sets give the same verdicts", [] {
    const auto log = rc::gen::container<std::vector<Draw>>(rc::gen::arbitrary<Draw>());
    const auto logs =
        *rc::gen::resize(100, rc::gen::container<std::vector<std::vector<Draw>>>(15, log));
    for (const std::vector<Draw>& draws : logs) check(draws);
  }));
}

}  // namespace
}  // namespace ferry::check
