// The strategies of choices.h.
#include "sim/explore/choices.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/mix_bits.h"

namespace ferry::sim {

std::vector<ActionId> draw_order(const OpGraph& graph, Choices& choices) {
  std::vector<std::vector<ActionId>> next(graph.size());
  std::vector<std::uint32_t> missing(graph.size());
  std::vector<Ready> ready;
  const auto is_ready = [&](ActionId id) {
    const auto at = std::lower_bound(ready.begin(), ready.end(), id,
                                     [](const Ready& a, ActionId b) { return a.action < b; });
    ready.insert(at, {id, graph[id].actor});
  };
  for (ActionId id = 0; id < graph.size(); ++id) {
    for (const ActionId pred : graph.preds(id)) next[pred].push_back(id);
    missing[id] = graph[id].preds;
    if (missing[id] == 0) is_ready(id);
  }
  std::vector<ActionId> order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const std::size_t chosen = choices.choose(ready);
    const ActionId id = ready[chosen].action;
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
    order.push_back(id);
    for (const ActionId then : next[id]) {
      if (--missing[then] == 0) is_ready(then);
    }
  }
  return order;
}

std::uint64_t Draws::next() { return mix_bits(seed_ + drawn_++ * 0x9e3779b97f4a7c15ull); }

// (A remainder's bias is n / 2^63.)
std::uint64_t Draws::below(std::uint64_t n) { return (next() >> 1) % n; }

PctChoices::PctChoices(const OpGraph& graph, std::uint64_t seed, unsigned changes)
    : lowest_(graph.actors()) {
  Draws draws(seed);
  for (std::uint64_t i = 0; i < graph.actors(); ++i) priority_.push_back(graph.actors() + i);
  for (std::size_t i = priority_.size(); i > 1; --i) {
    std::swap(priority_[i - 1], priority_[draws.below(i)]);
  }
  for (unsigned i = 0; i < changes && graph.size() > 0; ++i) {
    changes_.push_back(draws.below(graph.size()));
  }
}

std::size_t PctChoices::choose(std::span<const Ready> ready) {
  const auto highest = [&] {
    const auto less = [&](const Ready& a, const Ready& b) {
      return priority_[a.actor] < priority_[b.actor];
    };
    return static_cast<std::size_t>(std::max_element(ready.begin(), ready.end(), less) -
                                    ready.begin());
  };
  const std::uint64_t step = step_++;
  for (const std::uint64_t change : changes_) {
    // (Priorities below those at the start: each one lower than the last. 0 serves all further.)
    if (change == step) priority_[ready[highest()].actor] = lowest_ > 0 ? --lowest_ : 0;
  }
  return highest();
}

std::size_t EveryOrder::choose(std::span<const Ready> ready) {
  if (depth_ == path_.size()) path_.push_back({0, ready.size()});
  return path_[depth_++].chosen;
}

bool EveryOrder::next() {
  depth_ = 0;
  while (!path_.empty() && path_.back().chosen + 1 == path_.back().of) path_.pop_back();
  if (path_.empty()) return false;
  path_.back().chosen++;
  return true;
}

std::size_t ReplayChoices::choose(std::span<const Ready> ready) {
  if (at_ == list_.size()) return 0;
  const std::size_t chosen = list_[at_++];
  if (chosen < ready.size()) return chosen;
  throw std::out_of_range("choice " + std::to_string(at_) + ": " + std::to_string(chosen) + " of " +
                          std::to_string(ready.size()) + " ready actions");
}

}  // namespace ferry::sim
