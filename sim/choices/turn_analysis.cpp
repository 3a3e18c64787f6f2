// Implements turn_analysis.h with vector clocks: each turn has one, which counts the turns of each
// actor that come before it.
#include "sim/choices/turn_analysis.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/choices/hash.h"

namespace ferry::choices {
namespace {

bool contains(const std::vector<std::uint32_t>& actors, std::uint32_t actor) {
  return std::find(actors.begin(), actors.end(), actor) != actors.end();
}

bool contains(const std::vector<std::size_t>& turns, std::size_t turn) {
  return std::find(turns.begin(), turns.end(), turn) != turns.end();
}

bool has(std::uint8_t bits, Access access) { return (bits & bit(access)) != 0; }

}  // namespace

bool meet(const Touches& a, const Touches& b) {
  const auto clash = [](std::uint8_t one, std::uint8_t other) {
    return (has(one, Access::kWrite) &&
            (has(other, Access::kRead) || has(other, Access::kWrite))) ||
           (has(one, Access::kMake) && has(other, Access::kNeed));
  };
  const Touches& fewer = a.size() <= b.size() ? a : b;
  const Touches& more = a.size() <= b.size() ? b : a;
  return std::any_of(fewer.begin(), fewer.end(), [&](const auto& touch) {
    const auto found = more.find(touch.first);
    return found != more.end() &&
           (clash(touch.second, found->second) || clash(found->second, touch.second));
  });
}

// The accesses of a row's turns so far.
struct TurnAnalysis::Row {
  struct Accesses {
    std::optional<std::size_t> written;
    std::vector<std::size_t> read;  // since that write
    std::vector<std::size_t> made;
  };
  std::size_t begin = 0;
  std::map<std::uint64_t, Accesses> accesses;
  std::map<std::uint32_t, std::vector<std::size_t>> of_actor;
};

TurnAnalysis::TurnAnalysis(const std::vector<Turn>& turns) : turns_(turns) {
  Row row;
  for (std::size_t j = 0; j < turns.size(); ++j) {
    if (j > 0 && turns[j].row != turns[j - 1].row) {
      row = {};
      row.begin = j;
    }
    std::vector<std::size_t> met;
    std::vector<std::size_t> all = predecessors(row, j, met);
    std::vector<std::size_t> raced;
    const std::size_t ordered = all.size();
    all.insert(all.end(), met.begin(), met.end());
    for (std::size_t k = ordered; k < all.size(); ++k) {
      const bool between = std::any_of(all.begin(), all.end(), [&](std::size_t other) {
        return other != all[k] && before(all[k], other);
      });
      if (!between) raced.push_back(all[k]);
    }
    auto& own = row.of_actor[turns[j].actor];
    own.push_back(j);
    number(j, all, static_cast<std::uint32_t>(own.size()));
    for (const std::size_t i : raced) races_.push_back({i, j, instead(i, j)});
  }
}

// Returns the turns that come before this one in every order. `met` gets the other turns that it
// meets.
std::vector<std::size_t> TurnAnalysis::predecessors(Row& row, std::size_t turn,
                                                    std::vector<std::size_t>& met) {
  const Turn& now = turns_[turn];
  std::vector<std::size_t> always;
  std::size_t since = row.begin;  // the first turn at which the actor might go on again
  if (const auto own = row.of_actor.find(now.actor); own != row.of_actor.end()) {
    always.push_back(own->second.back());
    since = own->second.back() + 1;
  }
  const std::size_t earliest = since;
  while (since < turn && !contains(turns_[since].ready, now.actor)) ++since;
  if (since > earliest) always.push_back(since - 1);  // it could not go on before this one
  for (const auto& [key, bits] : now.touches) {
    Row::Accesses& accesses = row.accesses[key];
    const bool writes = has(bits, Access::kWrite);
    if (has(bits, Access::kNeed)) {
      always.insert(always.end(), accesses.made.begin(), accesses.made.end());
    }
    if (accesses.written && (writes || has(bits, Access::kRead))) met.push_back(*accesses.written);
    if (writes) met.insert(met.end(), accesses.read.begin(), accesses.read.end());
    if (writes) {
      accesses.written = turn;
      accesses.read.clear();
    } else if (has(bits, Access::kRead)) {
      accesses.read.push_back(turn);
    }
    if (has(bits, Access::kMake)) accesses.made.push_back(turn);
  }
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  std::erase_if(met, [&](std::size_t other) {
    return turns_[other].actor == now.actor || contains(always, other);
  });
  return always;
}

bool TurnAnalysis::before(std::size_t first, std::size_t second) const {
  const std::uint32_t actor = turns_[first].actor;
  return actor < clocks_[second].size() && clocks_[second][actor] >= clocks_[first][actor];
}

void TurnAnalysis::number(std::size_t turn, const std::vector<std::size_t>& before,
                          std::uint32_t ordinal) {
  const Turn& now = turns_[turn];
  Clock clock(now.actor + 1);
  for (const std::size_t each : before) {
    const Clock& earlier = clocks_[each];
    if (clock.size() < earlier.size()) clock.resize(earlier.size());
    for (std::size_t i = 0; i < earlier.size(); ++i) clock[i] = std::max(clock[i], earlier[i]);
  }
  clock[now.actor] = ordinal;
  std::uint64_t hash = combine(combine(now.row, now.actor), now.within);
  for (std::size_t i = 0; i < clock.size(); ++i) {
    if (clock[i] > 0) hash = combine(combine(hash, i), clock[i]);
  }
  hash_ += hash;  // a sum, so the order of the turns does not matter
  clocks_.push_back(std::move(clock));
}

// Returns the actors with which the other order of the two turns can begin (the paper's initials).
// Leave out `first` and all turns that come after it. The result has the actors of the remaining
// turns up to `second` that no other remaining turn comes before.
std::vector<std::uint32_t> TurnAnalysis::instead(std::size_t first, std::size_t second) const {
  std::vector<std::size_t> left;
  for (std::size_t k = first + 1; k < second; ++k) {
    if (!before(first, k)) left.push_back(k);
  }
  left.push_back(second);
  std::vector<std::uint32_t> actors;
  std::vector<std::uint32_t> seen;
  for (std::size_t n = 0; n < left.size(); ++n) {
    const std::uint32_t actor = turns_[left[n]].actor;
    if (contains(seen, actor)) continue;
    seen.push_back(actor);
    const bool begins = std::none_of(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n),
                                     [&](std::size_t k) { return before(k, left[n]); });
    if (begins && contains(turns_[first].ready, actor)) actors.push_back(actor);
  }
  return actors;
}

}  // namespace ferry::choices
