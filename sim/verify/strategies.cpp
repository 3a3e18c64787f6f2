#include "sim/verify/strategies.h"

#include <algorithm>

namespace ferry::verify {

std::uint32_t RandomChoices::pick(sim::ChoicePoint point, std::uint32_t ways, std::uint64_t) {
  if (point == sim::ChoicePoint::kMemory) return memory_left_-- == 0 ? 1 : 0;
  return static_cast<std::uint32_t>(draws_.in(0, static_cast<int>(ways)));
}

std::uint32_t ReplayedChoices::pick(sim::ChoicePoint, std::uint32_t ways, std::uint64_t at) {
  if (next_ == answers_.size() || answers_[next_].at != at) return 0;
  // (Where the program was changed since, there may be fewer ways.)
  return std::min(answers_[next_++].answer, ways - 1);
}

bool Enumeration::next() {
  while (!path_.empty() && path_.back().answer + 1 == path_.back().ways) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().answer;
  ++runs_;
  return true;
}

std::uint32_t EnumeratedChoices::pick(sim::ChoicePoint point, std::uint32_t ways,
                                      std::uint64_t at) {
  if (at >= all_.places_) return 0;
  if (at == all_.path_.size()) {
    const bool stays = point == sim::ChoicePoint::kMemory && out_of_memory_;
    all_.path_.push_back({0, stays ? 1 : ways});
  }
  const std::uint32_t answer = all_.path_[at].answer;
  out_of_memory_ |= point == sim::ChoicePoint::kMemory && answer != 0;
  return answer;
}

}  // namespace ferry::verify
