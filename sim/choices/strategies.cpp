#include "sim/choices/strategies.h"

#include <algorithm>

namespace ferry::choices {

std::uint32_t RandomChoices::pick(const Question& question) {
  if (is_failure(question.point)) return 0;
  return static_cast<std::uint32_t>(draws_.in(0, static_cast<int>(question.ways)));
}

PctChoices::PctChoices(std::uint64_t seed, std::uint64_t turns, unsigned changes)
    : draws_(seed), lowest_(std::uint64_t{1} << 32) {
  for (unsigned i = 0; i < changes && turns > 0; ++i) {
    changes_.push_back((draws_.bits() >> 1) % turns);
  }
}

// Returns the priority of an actor. At first it is random, above lowest_, and no two are equal (but
// for one chance in 2^31).
std::uint64_t& PctChoices::priority(ChoicePoint point, std::uint32_t actor) {
  auto& of_point = priorities_[static_cast<std::size_t>(point)];
  if (of_point.size() <= actor) of_point.resize(actor + 1);
  if (of_point[actor] == 0) of_point[actor] = draws_.bits() | (std::uint64_t{1} << 63);
  return of_point[actor];
}

std::uint32_t PctChoices::pick(const Question& question) {
  if (is_failure(question.point)) return 0;
  if (question.actors.empty()) {
    return static_cast<std::uint32_t>(draws_.in(0, static_cast<int>(question.ways)));
  }
  const auto highest = [&] {
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < question.ways; ++i) {
      const std::uint64_t found = priority(question.point, question.actors[i]);
      if (found > priority(question.point, question.actors[best])) best = i;
    }
    return best;
  };
  const std::uint64_t turn = turn_++;
  for (const std::uint64_t change : changes_) {
    if (change == turn) priority(question.point, question.actors[highest()]) = --lowest_;
  }
  return highest();
}

std::uint32_t ReplayedChoices::pick(const Question& question) {
  if (next_ == answers_.size() || answers_[next_].at != count()) return 0;
  ++given_[static_cast<std::size_t>(question.point)];
  // If the program changed since then, there may be fewer ways.
  return std::min(answers_[next_++].answer, question.ways - 1);
}

bool Enumeration::next() {
  while (!path_.empty() && path_.back().answer + 1 == path_.back().ways) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().answer;
  ++runs_;
  return true;
}

std::uint32_t EnumeratedChoices::pick(const Question& question) {
  if (count() >= all_.bounds_.places) return 0;
  if (count() == all_.path_.size()) {
    const bool fails = all_.bounds_.failures && !failure();
    const bool stays =
        deviations().size() >= all_.bounds_.deviations || (is_failure(question.point) && !fails);
    all_.path_.push_back({0, stays ? 1 : question.ways});
  }
  return all_.path_[count()].answer;
}

std::uint32_t OneFailure::pick(const Question& question) {
  if (is_failure(question.point)) return left_-- == 0 ? 1 : 0;
  return others_ ? others_->ask(question) : 0;
}

}  // namespace ferry::choices
