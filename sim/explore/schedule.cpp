// Delays to orders and back, and their text.
#include "sim/explore/schedule.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <queue>
#include <stdexcept>

namespace ferry::explore {
namespace {

[[noreturn]] void bad(std::size_t at, std::string_view word, std::string_view expected) {
  std::string text = "schedule, delay ";
  text += std::to_string(at);
  text.append(": \"").append(word).append("\": expected ").append(expected);
  throw std::invalid_argument(text);
}

}  // namespace

// Finds the smallest order, as numbers compare, that the graph and the delays allow.
std::vector<ActionId> order_of(const OpGraph& graph, const Schedule& schedule) {
  std::vector<std::vector<ActionId>> next(graph.size());
  std::vector<std::uint32_t> missing(graph.size(), 0);
  const auto edge = [&](ActionId from, ActionId to) {
    next[from].push_back(to);
    missing[to]++;
  };
  for (ActionId id = 0; id < graph.size(); ++id) {
    for (const ActionId pred : graph.preds(id)) edge(pred, id);
  }
  for (const Delay& delay : schedule) edge(delay.until, delay.late);
  std::priority_queue<ActionId, std::vector<ActionId>, std::greater<>> ready;
  for (ActionId id = 0; id < graph.size(); ++id) {
    if (missing[id] == 0) ready.push(id);
  }
  std::vector<ActionId> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const ActionId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const ActionId then : next[id]) {
      if (--missing[then] == 0) ready.push(then);
    }
  }
  if (order.size() == graph.size()) return order;
  for (const Delay& delay : schedule) {
    if (missing[delay.late] == 0) continue;
    throw std::invalid_argument("#" + name_of(graph, delay.late) + " cannot wait for #" +
                                name_of(graph, delay.until) + ", which comes after it");
  }
  throw std::logic_error("a graph with a circle");
}

std::vector<ActionId> draw_order(const OpGraph& graph, choices::Choices& choices) {
  std::vector<std::vector<ActionId>> next(graph.size());
  std::vector<std::uint32_t> missing(graph.size());
  std::vector<ActionId> ready;  // in issue order
  std::vector<std::uint32_t> actors;
  const auto is_ready = [&](ActionId id) {
    const auto at = std::lower_bound(ready.begin(), ready.end(), id);
    actors.insert(actors.begin() + (at - ready.begin()), graph[id].actor);
    ready.insert(at, id);
  };
  for (ActionId id = 0; id < graph.size(); ++id) {
    for (const ActionId pred : graph.preds(id)) next[pred].push_back(id);
    missing[id] = graph[id].preds;
    if (missing[id] == 0) is_ready(id);
  }
  std::vector<ActionId> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const auto chosen =
        static_cast<std::ptrdiff_t>(choices.turn(choices::ChoicePoint::kDevice, actors));
    order.push_back(ready[static_cast<std::size_t>(chosen)]);
    ready.erase(ready.begin() + chosen);
    actors.erase(actors.begin() + chosen);
    for (const ActionId then : next[order.back()]) {
      if (--missing[then] == 0) is_ready(then);
    }
  }
  return order;
}

// For each action, finds the last of those that were issued later and ran before it.
Schedule schedule_of(const std::vector<ActionId>& order) {
  Schedule schedule;
  std::vector<ActionId> peaks;  // so far, those larger than all behind them: they only fall
  for (const ActionId id : order) {
    while (!peaks.empty() && peaks.back() < id) peaks.pop_back();
    if (!peaks.empty()) schedule.push_back({id, peaks.back()});
    peaks.push_back(id);
  }
  std::sort(schedule.begin(), schedule.end(),
            [](const Delay& a, const Delay& b) { return a.late < b.late; });
  return schedule;
}

bool is_order_of(const OpGraph& graph, const std::vector<ActionId>& order) {
  if (order.size() != graph.size()) return false;
  std::vector<char> done(graph.size(), 0);
  for (const ActionId id : order) {
    if (id >= graph.size() || done[id]) return false;
    for (const ActionId pred : graph.preds(id)) {
      if (!done[pred]) return false;
    }
    done[id] = 1;
  }
  return true;
}

// A Fenwick tree counts those that were seen and are larger.
std::uint64_t inversions(const std::vector<ActionId>& order) {
  std::vector<std::uint32_t> tree(order.size() + 1, 0);
  std::uint64_t count = 0, seen = 0;
  for (const ActionId id : order) {
    std::uint64_t smaller = 0;
    for (std::size_t i = id; i > 0; i &= i - 1) smaller += tree[i];
    count += seen++ - smaller;
    for (std::size_t i = std::size_t{id} + 1; i <= order.size(); i += i & (~i + 1)) tree[i]++;
  }
  return count;
}

std::string name_of(const OpGraph& graph, ActionId action) {
  std::string text = std::to_string(graph.recording().number(graph[action].op));
  if (graph[action].kind == ActionKind::kStage) text += "r";
  return text;
}

std::string to_string(const OpGraph& graph, const Schedule& schedule) {
  if (schedule.empty()) return "-";
  std::string text;
  for (const Delay& delay : schedule) {
    if (!text.empty()) text += " ";
    text += name_of(graph, delay.late);
    text += "@";
    text += name_of(graph, delay.until);
  }
  return text;
}

Schedule parse_schedule(const OpGraph& graph, std::string_view text) {
  Schedule schedule;
  std::size_t at = 0;
  const auto action = [&](std::string_view word, std::string_view whole) {
    const bool stage = word.ends_with('r');
    if (stage) word.remove_suffix(1);
    std::uint64_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || read.ec != std::errc() || read.ptr != word.data() + word.size()) {
      bad(at, whole, "OP@UNTIL, two numbers of ops (41@52)");
    }
    for (const bool by_host : {false, true}) {
      const ActionId id = graph.find(number, by_host);
      if (id != kNoAction && (graph[id].kind == ActionKind::kStage) == stage) return id;
    }
    std::string expected = "ops that touch memory, which #";
    expected.append(word).append(stage ? "r" : "").append(" is not");
    bad(at, whole, expected);
  };
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (word == "-" && schedule.empty() && text.find_first_not_of(' ') == std::string_view::npos) {
      return schedule;
    }
    at++;
    const std::size_t split = word.find('@');
    if (split == std::string_view::npos) bad(at, word, "OP@UNTIL, two numbers of ops (41@52)");
    const Delay delay{action(word.substr(0, split), word), action(word.substr(split + 1), word)};
    if (delay.until <= delay.late) bad(at, word, "an op that waits for one issued after it");
    schedule.push_back(delay);
  }
  if (schedule.empty()) throw std::invalid_argument("a schedule: expected OP@UNTIL …, or \"-\"");
  return schedule;
}

}  // namespace ferry::explore
