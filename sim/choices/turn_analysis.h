// Finds which turns of a run come before which others, and which of them could also run in the
// other order.
//
// A turn comes before a later turn of its row in these cases: both have the same actor; it made
// what the later turn needs; the actor of the later turn could not go on before it; the two meet
// (one writes what the other reads or writes); or it comes before a third turn that comes before
// the later one. This relation is the same for all orders of a class, and differs between classes.
//
// A *race* is two turns that meet and that nothing else orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/choices/choices.h"

namespace ferry::choices {

// The things that a turn touched: for each key, one bit for each kind of access.
using Touches = std::map<std::uint64_t, std::uint8_t>;
constexpr std::uint8_t bit(Access access) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(access));
}
// True if two turns that touch these may not change places.
bool meet(const Touches& a, const Touches& b);

struct Turn {
  std::size_t row = 0;
  std::uint32_t actor = 0;
  std::vector<std::uint32_t> ready;  // all actors that could have gone on
  std::uint64_t within = 0;          // a hash of the answers that were given within it
  Touches touches;
};

struct Race {
  std::size_t first = 0, second = 0;
  // One of these actors must go on where `first` did, to get the other order.
  std::vector<std::uint32_t> instead;
};

class TurnAnalysis {
 public:
  // The turns of a row must be consecutive.
  explicit TurnAnalysis(const std::vector<Turn>& turns);

  const std::vector<Race>& races() const { return races_; }
  // Runs of one class have equal hashes.
  std::uint64_t hash() const { return hash_; }

 private:
  struct Row;
  // For each actor, the number of its turns in the row that come before the turn, or are the turn.
  using Clock = std::vector<std::uint32_t>;

  std::vector<std::size_t> predecessors(Row& row, std::size_t turn, std::vector<std::size_t>& met);
  bool before(std::size_t first, std::size_t second) const;
  std::vector<std::uint32_t> instead(std::size_t first, std::size_t second) const;
  void number(std::size_t turn, const std::vector<std::size_t>& before, std::uint32_t ordinal);

  const std::vector<Turn>& turns_;
  std::vector<Clock> clocks_;
  std::vector<Race> races_;
  std::uint64_t hash_ = 0;
};

}  // namespace ferry::choices
