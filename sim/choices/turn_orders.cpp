// Implements turn_orders.h: a depth-first search. path_ has the places of the current run at which
// an actor was chosen, and what is still to be tried there.
#include "sim/choices/turn_orders.h"

#include <algorithm>
#include <utility>

#include "sim/choices/hash.h"

namespace ferry::choices {

bool TurnOrders::Place::spent(std::uint32_t actor) const {
  const auto is = [actor](const Tried& each) { return each.actor == actor; };
  return std::any_of(tried.begin(), tried.end(), is) ||
         std::any_of(asleep.begin(), asleep.end(), is);
}

void TurnOrders::begin() {
  turns_.clear();
  places_.clear();
  at_ = 0;
  repeats_ = false;
}

// Adds the place of a question that no earlier run has asked.
void TurnOrders::place(const Question& question, std::size_t row, bool within) {
  Place place;
  place.ready.assign(question.actors.begin(), question.actors.end());
  place.within = within;
  if (!within) {
    if (which_ == Which::kAll) {
      place.wanted = place.ready;
    } else {
      place.asleep = still_asleep(row);
      const auto awake = std::find_if(place.ready.begin(), place.ready.end(),
                                      [&](std::uint32_t each) { return !place.spent(each); });
      if (awake == place.ready.end()) {
        repeats_ = true;
        return;
      }
      place.chosen = static_cast<std::uint32_t>(awake - place.ready.begin());
      place.wanted = {*awake};
    }
  }
  path_.push_back(std::move(place));
}

// Returns the sleep set after the last turn of the row: tried actors whose turn does not meet that
// turn.
std::vector<TurnOrders::Tried> TurnOrders::still_asleep(std::size_t row) const {
  std::vector<Tried> asleep;
  if (turns_.empty() || turns_.back().row != row) return asleep;
  const Place& before = path_[places_.back()];
  for (const auto* each : {&before.asleep, &before.tried}) {
    std::copy_if(each->begin(), each->end(), std::back_inserter(asleep), [&](const Tried& tried) {
      return tried.actor != turns_.back().actor && !meet(tried.touches, turns_.back().touches);
    });
  }
  return asleep;
}

// The run takes the turn that was chosen at its next place.
void TurnOrders::take(std::size_t row, bool within) {
  Place& place = path_[at_];
  if (within) {
    if (!turns_.empty()) turns_.back().within = combine(turns_.back().within, place.chosen + 1);
  } else {
    places_.push_back(at_);
    turns_.push_back({row, place.ready[place.chosen], place.ready, 0, {}});
  }
  ++at_;
}

void TurnOrders::analyse() {
  const TurnAnalysis analysis(turns_);
  last_class_ = analysis.hash();
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    for (const auto& [key, bits] : turns_[i].touches) path_[places_[i]].touches[key] |= bits;
  }
  if (which_ == Which::kAll) return;
  for (const Race& race : analysis.races()) {
    std::vector<std::uint32_t>& wanted = path_[places_[race.first]].wanted;
    const bool tried =
        std::any_of(race.instead.begin(), race.instead.end(), [&](std::uint32_t actor) {
          return std::find(wanted.begin(), wanted.end(), actor) != wanted.end();
        });
    if (!tried && !race.instead.empty()) wanted.push_back(race.instead.front());
  }
}

// Chooses the next actor at a place. Returns false if there is none.
bool TurnOrders::advance(Place& place) const {
  if (place.within) return ++place.chosen < place.ready.size();
  place.tried.push_back({place.ready[place.chosen], std::exchange(place.touches, {})});
  for (const std::uint32_t actor : place.wanted) {
    if (place.spent(actor)) continue;
    const auto found = std::find(place.ready.begin(), place.ready.end(), actor);
    place.chosen = static_cast<std::uint32_t>(found - place.ready.begin());
    return true;
  }
  return false;
}

bool TurnOrders::next() {
  last_repeated_ = repeats_;
  repeated_ += repeats_ ? 1 : 0;
  analyse();
  while (!path_.empty() && !advance(path_.back())) path_.pop_back();
  if (path_.empty()) return false;
  ++runs_;
  return true;
}

bool OrderedChoices::is_told(const Question& question) const {
  return depth_ > 0 && !question.actors.empty() && !orders_.repeats_ &&
         (depth_ == 1 || question.actors.size() > 1);
}

std::uint32_t OrderedChoices::pick(const Question& question) {
  if (question.point == ChoicePoint::kPoll) return question.done ? 0 : 1;
  if (!is_told(question)) return 0;
  if (orders_.at_ == orders_.path_.size()) orders_.place(question, rows_, depth_ > 1);
  return orders_.repeats_ ? 0 : orders_.path_[orders_.at_].chosen;
}

void OrderedChoices::took(const Question& question, std::uint32_t /*answer*/) {
  if (!is_told(question)) return;
  if (orders_.at_ == orders_.path_.size()) orders_.place(question, rows_, depth_ > 1);
  if (!orders_.repeats_) orders_.take(rows_, depth_ > 1);
}

void OrderedChoices::row_began() {
  if (depth_++ == 0) ++rows_;
}

void OrderedChoices::touched(std::uint64_t key, Access access) {
  if (depth_ == 0 || orders_.repeats_ || orders_.turns_.empty()) return;
  Turn& turn = orders_.turns_.back();
  const auto what = static_cast<Touched>(key >> kTouchedShift);
  const bool of_row = what == Touched::kNode || what == Touched::kQueue;
  if (turn.row == rows_ && (depth_ == 1 || !of_row)) turn.touches[key] |= bit(access);
}

}  // namespace ferry::choices
