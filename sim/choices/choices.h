// Decides what CUDA, PyTorch, memory and faults leave open. Where a run may go on in several legal
// ways it asks: the host while it runs (Machine), and a recording's device when its actions are
// put in an order (sim/explore/schedule.h). The answer 0 is what happens where nobody is asked.
//
// So a run is a function of its program and of the answers, which are written down as *deviations*:
// the answers that were not 0, each with its place in the row. A strategy makes up answers
// (sim/choices/strategies.h); replaying a run is giving them again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ferry::choices {

enum class ChoicePoint : std::uint8_t {
  kPoll,      // a pool's query: 1, the device is later or earlier than its clock says
  kPageable,  // a copy of pageable memory: 1, it does not block the host
  kEngine,    // backward: which device's engine thread runs its next node
  kWorker,    // pipelines: whose turn it is
  kMemory,    // an allocation: 1, out of memory
  kFault,     // a step of the core: 1, the call fails
  kDevice,    // a recording's device: which stream's or host thread's next action runs
};
inline constexpr std::size_t kChoicePoints = 7;
inline constexpr std::array<std::string_view, kChoicePoints> kChoiceNames = {
    "poll", "pageable copy", "engine", "worker", "out of memory", "failing call", "device"};

constexpr bool is_failure(ChoicePoint point) {
  return point == ChoicePoint::kMemory || point == ChoicePoint::kFault;
}

struct Question {
  ChoicePoint point;
  std::uint32_t ways;                     // 2 or more
  std::span<const std::uint32_t> actors;  // whose turn it may be, one for each way; else empty
};

struct Deviation {
  std::uint64_t at = 0;  // which of the run's questions, from 0
  std::uint32_t answer = 0;
  bool operator==(const Deviation&) const = default;
};

class Choices {
 public:
  Choices() = default;
  Choices(const Choices&) = delete;
  Choices& operator=(const Choices&) = delete;
  virtual ~Choices() = default;

  // Returns an answer in [0, ways). Where there is one way only, nothing is asked.
  std::uint32_t choose(ChoicePoint point, std::uint32_t ways) { return ask({point, ways, {}}); }
  // Returns which of the actors goes on.
  std::uint32_t turn(ChoicePoint point, std::span<const std::uint32_t> actors) {
    return ask({point, static_cast<std::uint32_t>(actors.size()), actors});
  }
  std::uint32_t ask(const Question& question) {
    if (question.ways < 2) return 0;
    ++asked_[static_cast<std::size_t>(question.point)];
    const std::uint32_t answer = pick(question);
    if (answer != 0) deviations_.push_back({count_, answer});
    if (is_failure(question.point)) {
      if (answer != 0 && !failure_) failure_ = failures_asked_;
      ++failures_asked_;
    }
    ++count_;
    return answer;
  }

  std::uint64_t count() const { return count_; }
  const std::array<std::uint64_t, kChoicePoints>& asked() const { return asked_; }
  const std::vector<Deviation>& deviations() const { return deviations_; }
  // Returns which of all that might have failed was the first to do so, counted from 0.
  std::optional<std::uint64_t> failure() const { return failure_; }

 private:
  // Answers the run's question number count().
  virtual std::uint32_t pick(const Question& question) = 0;

  std::uint64_t count_ = 0;
  std::uint64_t failures_asked_ = 0;
  std::optional<std::uint64_t> failure_;
  std::array<std::uint64_t, kChoicePoints> asked_{};
  std::vector<Deviation> deviations_;
};

}  // namespace ferry::choices
