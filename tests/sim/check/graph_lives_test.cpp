// Small logs with CUDA graphs and their verdict (formats/STREAM_LOG.md, "Graphs"), and drawn logs
// beside a model that looks at single bytes.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "formats/error.h"
#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using test::judge;
using test::line_of;

// "R a X" as a node of a graph: at its capture, or at a replay.
std::string with(const std::string& line, const std::string& keys) {
  std::string text = line_of(line);
  text.insert(text.size() - 1, keys);
  return text;
}
std::string node(const std::string& line, int number, const std::string& graph = "g") {
  return with(line, ",\"graph\":\"" + graph + "\",\"node\":" + std::to_string(number));
}
std::string captured(const std::string& line, int number, const std::string& graph = "g") {
  return with(node(line, number, graph), ",\"captured\":true");
}
std::string pooled(const std::string& line, const std::string& graph = "g",
                   const std::string& pool = "p") {
  return with(line, ",\"graph\":\"" + graph + "\",\"graph_pool\":\"" + pool + "\"");
}

TEST(GraphLives, ABlockFromOutsideMustBeTheSame) {
  judge({
      {{"alloc a X", captured("R a X", 0), node("R a X", 0), node("R a X", 0)}, ""},
      {{"alloc a X", captured("R a X", 0), "free a X", node("R a X", 0)}, "replay after free 3→4"},
      {{"alloc a X", captured("W a X", 0), "free a X", "alloc a X", node("W a X", 0)},
       "replay after free 4→5"},
      // It was freed during the capture.
      {{"alloc a X", captured("R a X", 0), "free a X", captured("W a Y", 1), node("R a X", 0)},
       "replay after free 3→5"},
      {{"alloc a X malloc", captured("R a X", 0), "free a X malloc", node("R a X", 0)},
       "replay after free 3→4"},
      // No allocation of the log covers them.
      {{captured("R a X", 0), node("R a X", 0)}, ""},
      {{"alloc a X", "free a X", captured("R a X", 0)}, "use after free 2→3"},
  });
}

TEST(GraphLives, AGraphMayUseTheFreeMemoryOfItsPool) {
  const std::vector<std::string> temporary = {pooled("alloc a X"), captured("W a X", 0),
                                              captured("R a X", 1), "free a X"};
  const auto then = [&](const std::vector<std::string>& more) {
    std::vector<std::string> log = temporary;
    log.insert(log.end(), more.begin(), more.end());
    return log;
  };
  const std::string kept = pooled("alloc a X");  // line 5: it lives on in the pool
  judge({
      {then({node("W a X", 0), node("R a X", 1)}), ""},
      {then({kept, "W a X", node("W a X", 0), node("R a X", 1), "R a X"}),
       "read after a replay overwrote it 7→9"},
      {then({kept, "W a X", node("W a X", 0), node("R a X", 1), "W a X", "R a X"}), ""},
      {then({kept, "W a X", node("W a X", 0), "free a X", "alloc a X", "R a X"}), ""},
      {then({kept, "W a X", node("R a X", 1), "R a X"}), ""},  // nothing was written
      // The replay itself writes it again: it is the graph's output.
      {then({kept, captured("W a X", 2), node("W a X", 0), node("W a X", 2), "R a X"}), ""},
      {then({kept, captured("W a X", 2), node("W a X", 0), "R a X"}),
       "read after a replay overwrote it 7→8"},
  });
}

TEST(GraphLives, GraphsThatShareAPoolAreReplayedInTheirOrder) {
  const std::vector<std::string> two = {pooled("alloc a X"), captured("W a X", 0), "free a X",
                                        pooled("alloc a X", "h"), captured("W a X", 0, "h")};
  const auto then = [&](const std::vector<std::string>& more) {
    std::vector<std::string> log = two;
    log.insert(log.end(), more.begin(), more.end());
    return log;
  };
  judge({
      {then({node("W a X", 0), node("W a X", 0, "h"), "R a X"}), ""},
      {then({node("W a X", 0, "h"), node("W a X", 0), "R a X"}),
       "read after a replay overwrote it 7→8"},
      {then({node("W a X", 0), node("W b X", 0, "h")}), "write after write 6→7"},
      // What one saves for the other may be freed after both captures.
      {{pooled("alloc a X"), captured("W a X", 0), captured("R a X", 0, "h"),
        pooled("alloc a Y", "h"), "free a X", node("W a X", 0), node("R a X", 0, "h")},
       ""},
      {{pooled("alloc a X"), captured("W a X", 0), captured("R a X", 0, "h"),
        pooled("alloc a Y", "h", "q"), "free a X", node("W a X", 0), node("R a X", 0, "h")},
       "replay after free 5→7"},
  });
}

TEST(GraphLives, FreeBytesOfAPoolOfGraphsMayBeUsed) {
  const auto in_pool = [](const std::string& line) { return with(line, ",\"graph_pool\":\"p\""); };
  judge({
      {{in_pool("alloc a X"), "W a X", "free a X", "W a X"}, ""},
      {{"alloc a X", "W a X", "free a X", "W a X"}, "use after free 3→4"},
      {{in_pool("alloc a X"), "free a X", "alloc a X", "free a X", "W a X"}, "use after free 4→5"},
      // A node may use what was allocated before the capture, in the pool.
      {{in_pool("alloc a X"), pooled("alloc a Y"), captured("R a X", 0), "free a X",
        node("R a X", 0)},
       ""},
      {{"alloc a X", pooled("alloc a Y"), captured("R a X", 0), "free a X", node("R a X", 0)},
       "replay after free 4→5"},
  });
}

TEST(GraphLives, ACaptureOrdersNothingAndRacesWithNothing) {
  judge({
      {{"alloc a X", captured("W a X", 0), "R b X"}, ""},
      {{"alloc a X", captured("W a X", 0), "R b X", node("W a X", 0)}, "write after read 3→4"},
      {{"alloc a X", captured("W a X", 0), "R b X", "+e b", "-e a", node("W a X", 0)}, ""},
  });
}

TEST(GraphLives, ALineOfAGraphHasItsKeys) {
  for (const char* const keys : {",\"captured\":true", ",\"graph\":\"g\"", ",\"graph\":1.5",
                                 ",\"graph\":\"g\",\"node\":-1"}) {
    EXPECT_THROW(test::report_of({with("W a X", keys)}), InputError) << keys;
  }
}

// What the rules say, for each byte by itself. `broken` leaves one of them out.
enum class Broken : std::uint8_t { kNone, kForgetsFrees, kForgetsWrites, kBlamesThePool };

class Model {
 public:
  explicit Model(Broken broken) : broken_(broken) {}

  void alloc(int byte, int graph) {
    at(byte) = {.life = ++lives_, .live = true, .graph = graph};
    allocated_.insert(graph);
  }
  void free(int byte) {
    at(byte).live = false;
    at(byte).overwritten = false;
  }
  void capture(int graph, int node, int byte) {
    captured_[{graph, node}] = {at(byte).live ? at(byte).life : 0, at(byte).graph};
  }
  // Each returns true for a mistake.
  bool replay(int graph, int node, int byte, bool writes) {
    const auto [life, of] = captured_.at({graph, node});
    if (life == 0) return false;
    const bool own = of != 0 && (of == graph || !allocated_.contains(graph));
    Byte& now = at(byte);
    const bool same = now.live && now.life == life;
    if (same) return use(byte, writes);
    if (!own && broken_ != Broken::kForgetsFrees) return true;
    if (own && now.live && writes) now.overwritten = true;
    return own && broken_ == Broken::kBlamesThePool;
  }
  bool use(int byte, bool writes) {
    if (writes && broken_ != Broken::kForgetsWrites) at(byte).overwritten = false;
    return !writes && at(byte).overwritten;
  }
  bool is_live(int byte) { return at(byte).live; }

 private:
  struct Byte {
    int life = 0;
    bool live = false;
    int graph = 0;
    bool overwritten = false;
  };
  Byte& at(int byte) { return bytes_[static_cast<std::size_t>(byte)]; }

  Broken broken_;
  int lives_ = 0;
  std::array<Byte, 3> bytes_;
  std::map<std::pair<int, int>, std::pair<int, int>> captured_;
  std::set<int> allocated_;  // graphs that did, each in a pool of its own
};

// Draws a log of three buffers, two graphs and one stream, and counts the lines with a mistake on
// which the checker and the model differ.
int differences(std::uint32_t seed, Broken broken) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return static_cast<int>(random() % end); };
  const std::array<std::string, 3> names = {"X", "Y", "Z"};
  struct Node {
    int graph, number, byte;
    bool writes;
  };
  Model model(broken);
  std::vector<Node> nodes;
  std::vector<std::string> log;
  std::set<std::uint64_t> expected;
  for (int i = 0; i < 100; ++i) {
    const int byte = below(3), graph = 1 + below(2);
    const std::string& name = names[static_cast<std::size_t>(byte)];
    const bool writes = below(2) == 0;
    const std::string use = std::string(writes ? "W" : "R") + " a " + name;
    const std::string called = graph == 1 ? "g" : "h";
    bool wrong = false;
    switch (below(5)) {
      case 0:
        if (model.is_live(byte)) continue;
        if (below(2) == 0) {
          log.push_back(pooled("alloc a " + name, called, called));
          model.alloc(byte, graph);
        } else {
          log.push_back("alloc a " + name);
          model.alloc(byte, 0);
        }
        break;
      case 1:
        if (!model.is_live(byte)) continue;
        log.push_back("free a " + name);
        model.free(byte);
        break;
      case 2:
        if (!model.is_live(byte)) continue;
        nodes.push_back({graph, static_cast<int>(nodes.size()), byte, writes});
        log.push_back(captured(use, nodes.back().number, called));
        model.capture(graph, nodes.back().number, byte);
        break;
      case 3: {
        if (nodes.empty()) continue;
        const Node& each =
            nodes[static_cast<std::size_t>(below(static_cast<std::uint32_t>(nodes.size())))];
        const std::string line = std::string(each.writes ? "W" : "R") + " a " +
                                 names[static_cast<std::size_t>(each.byte)];
        log.push_back(node(line, each.number, each.graph == 1 ? "g" : "h"));
        wrong = model.replay(each.graph, each.number, each.byte, each.writes);
        break;
      }
      default:
        if (!model.is_live(byte)) continue;
        log.push_back(use);
        wrong = model.use(byte, writes);
        break;
    }
    // A name of its own for each line, so that no two reports are merged.
    log.back() = with(log.back(), ",\"name\":\"" + std::to_string(log.size()) + "\"");
    if (wrong) expected.insert(log.size());
  }
  std::set<std::uint64_t> found;
  for (const LogViolation& each : test::report_of(log).violations) found.insert(each.line);
  int differ = 0;
  for (std::uint64_t line = 1; line <= log.size(); ++line) {
    if (found.contains(line) != expected.contains(line)) ++differ;
  }
  return differ;
}

TEST(GraphLives, DrawnLogsAreJudgedAsByteByByte) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    ASSERT_EQ(differences(seed, Broken::kNone), 0) << "seed " << seed;
  }
}

TEST(GraphLives, EachRuleIsSeenInDrawnLogs) {
  for (const Broken broken :
       {Broken::kForgetsFrees, Broken::kForgetsWrites, Broken::kBlamesThePool}) {
    int differ = 0;
    for (std::uint32_t seed = 0; seed < 200; ++seed) differ += differences(seed, broken);
    EXPECT_GT(differ, 10) << static_cast<int>(broken);
  }
}

}  // namespace
}  // namespace ferry::check
