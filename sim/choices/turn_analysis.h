// Which turns of a run come before which others, and which of them might have been taken the other
// way round.
//
// A turn comes before a later one of its row if both are of one actor, if it made what the later
// one needs, if the later one's actor could not go on before it, if they meet (one writes what the
// other reads or writes), and if a turn between says so. What a run's turns say of each other is
// the same for all orders of its class, and is other for others.
//
// A *race* is two turns that meet while nothing else puts one before the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/choices/choices.h"

namespace ferry::choices {

// What a turn touched: by key, a bit for each kind of access.
using Touches = std::map<std::uint64_t, std::uint8_t>;
constexpr std::uint8_t bit(Access access) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(access));
}
// Whether turns that touch these may not change places.
bool meet(const Touches& a, const Touches& b);

struct Turn {
  std::size_t row = 0;
  std::uint32_t actor = 0;
  std::vector<std::uint32_t> ready;  // all whose turn it might have been
  std::uint64_t within = 0;          // a hash of what was answered within it
  Touches touches;
};

struct Race {
  std::size_t first = 0, second = 0;
  // For the other order one of these actors goes on where `first` did.
  std::vector<std::uint32_t> instead;
};

class TurnAnalysis {
 public:
  // Rows do not come again.
  explicit TurnAnalysis(const std::vector<Turn>& turns);

  const std::vector<Race>& races() const { return races_; }
  // Equal for runs of one class.
  std::uint64_t hash() const { return hash_; }

 private:
  struct Row;
  // By actor: how many of its turns of the row come before, the turn itself included.
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
