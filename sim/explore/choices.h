// Who decides which action runs next: one method, one class for each strategy.
//
// All that a device may decide goes through choose(), so that an order is repeated by repeating its
// choices. Of each stream and each host thread one action is ready at a time (and frees of host
// memory, which count as the thread's). Numbers are
// drawn from a counter (SplitMix64), so equal seeds give equal orders everywhere.
//
//   RandomChoices    each ready action alike
//   PctChoices       Burckhardt, Kothari, Musuvathi, Nagarakatte 2010: the ready actor of the
//   highest
//                    priority runs; at `changes` random steps the one that runs falls to the
//                    bottom. Finds a bug of depth changes + 1 with probability ≥ 1 / (actors ·
//                    steps^changes).
//   EveryOrder       one order after the other, until there is none left
//   ReplayChoices    as listed; the first ready action where the list ends
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/explore/op_graph.h"

namespace ferry::sim {

struct Ready {
  ActionId action;
  std::uint32_t actor;
};

class Choices {
 public:
  virtual ~Choices() = default;
  // Which of them, in issue order, runs next; there is at least one.
  virtual std::size_t choose(std::span<const Ready> ready) = 0;
};

// An order of the graph, drawn from the choices.
std::vector<ActionId> draw_order(const OpGraph& graph, Choices& choices);

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t next();
  // In [0, n), n > 0.
  std::uint64_t below(std::uint64_t n);

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(std::uint64_t seed) : draws_(seed) {}
  std::size_t choose(std::span<const Ready> ready) override { return draws_.below(ready.size()); }

 private:
  Draws draws_;
};

// For one order: as many steps as the graph has actions.
class PctChoices final : public Choices {
 public:
  PctChoices(const OpGraph& graph, std::uint64_t seed, unsigned changes);
  std::size_t choose(std::span<const Ready> ready) override;

 private:
  std::vector<std::uint64_t> priority_;  // by actor
  std::vector<std::uint64_t> changes_;   // steps
  std::uint64_t step_ = 0;
  std::uint64_t lowest_;  // below those at the start: each change takes the next one down
};

class EveryOrder final : public Choices {
 public:
  std::size_t choose(std::span<const Ready> ready) override;
  // Whether there is an order that was not drawn yet; to be called between orders.
  bool next();

 private:
  struct Choice {
    std::size_t chosen, of;
  };
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
};

class ReplayChoices final : public Choices {
 public:
  explicit ReplayChoices(std::vector<std::size_t> list) : list_(std::move(list)) {}
  // Throws std::out_of_range where the list names one that is not there.
  std::size_t choose(std::span<const Ready> ready) override;

 private:
  std::vector<std::size_t> list_;
  std::size_t at_ = 0;
};

}  // namespace ferry::sim
