// Implements schedule.h: turns delays into orders and back, and writes them as text.
#include "sim/explore/schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

namespace ferry::explore {
// Finds the lexicographically smallest order that the graph and the delays allow.
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
  throw std::logic_error("the graph has a cycle");
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

// For each action, finds the last one that ran before it although it was issued later.
Schedule schedule_of(const std::vector<ActionId>& order) {
  Schedule schedule;
  std::vector<ActionId> peaks;  // actions so far that are larger than all after them, so they fall
  for (const ActionId id : order) {
    while (!peaks.empty() && peaks.back() < id) peaks.pop_back();
    if (!peaks.empty()) schedule.push_back({id, peaks.back()});
    peaks.push_back(id);
  }
  std::sort(schedule.begin(), schedule.end(),
            [](const Delay& a, const Delay& b) { return a.late < b.late; });
  return schedule;
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

namespace {

ActionId action_of(const OpGraph& graph, std::string_view name) {
  for (ActionId id = 0; id < graph.size(); ++id) {
    if (name_of(graph, id) == name) return id;
  }
  throw std::invalid_argument(
      "a schedule: expected the number of an op that touches memory, not '" + std::string(name) +
      "'");
}

}  // namespace

Schedule parse_schedule(const OpGraph& graph, std::string_view text) {
  Schedule schedule;
  if (text == "-") return schedule;
  while (true) {
    const std::string_view delay = text.substr(0, text.find(' '));
    const std::size_t at = delay.find('@');
    if (at == std::string_view::npos) {
      throw std::invalid_argument("a schedule: expected LATE@UNTIL, not '" + std::string(delay) +
                                  "'");
    }
    schedule.push_back(
        {action_of(graph, delay.substr(0, at)), action_of(graph, delay.substr(at + 1))});
    if (delay.size() == text.size()) return schedule;
    text.remove_prefix(delay.size() + 1);
  }
}

}  // namespace ferry::explore
