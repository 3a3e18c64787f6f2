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
  bool done = false;                      // kPoll: what the clock says
};

// How a turn touches something that other turns may touch as well. Who writes meets whoever reads
// or writes. What is made must be there before a turn that needs it.
enum class Access : std::uint8_t { kRead, kWrite, kMake, kNeed };

// What is touched. A key is one of these with a number of its own: what two turns make that do not
// meet must have different numbers, in whatever order they run. Nodes and queues are the row's own.
enum class Touched : std::uint8_t {
  kStream,
  kRecord,  // of an event
  kPool,
  kStorage,
  kGradient,
  kTask,   // of a worker
  kNode,   // of a backward: the gradients that came to it
  kQueue,  // the nodes of a device that are ready
};
inline constexpr unsigned kTouchedShift = 56;
constexpr std::uint64_t touch_key(Touched what, std::uint64_t number) {
  return (static_cast<std::uint64_t>(what) << kTouchedShift) | number;
}

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
  // Returns whether a pool's query finds the event done; `clock`: whether it is.
  bool poll(bool clock) { return (ask({ChoicePoint::kPoll, 2, {}, clock}) == 0) == clock; }
  // Returns which of the actors goes on. All that is done until the next question of this kind, or
  // the end of the row, is that actor's turn.
  std::uint32_t turn(ChoicePoint point, std::span<const std::uint32_t> actors) {
    const Question question{point, static_cast<std::uint32_t>(actors.size()), actors};
    const std::uint32_t answer = ask(question);
    took(question, answer);
    return answer;
  }
  // The turn touches something.
  void touch(Touched what, std::uint64_t number, Access access) {
    touched(touch_key(what, number), access);
  }
  // Turns come in rows: the tasks of a pipeline's workers, or the nodes of one backward. What is
  // done before a row, or after it, is so in every order of its turns. Rows nest.
  class Row {
   public:
    explicit Row(Choices* choices) : choices_(choices) {
      if (choices_) choices_->row_began();
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;
    ~Row() {
      if (choices_) choices_->row_ended();
    }

   private:
    Choices* choices_;
  };
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
  // For those who go through orders (turn_orders.h): `took` is told of turns without a choice, too.
  virtual void row_began() {}
  virtual void row_ended() {}
  virtual void took(const Question& /*question*/, std::uint32_t /*answer*/) {}
  virtual void touched(std::uint64_t /*key*/, Access /*access*/) {}

  std::uint64_t count_ = 0;
  std::uint64_t failures_asked_ = 0;
  std::optional<std::uint64_t> failure_;
  std::array<std::uint64_t, kChoicePoints> asked_{};
  std::vector<Deviation> deviations_;
};

}  // namespace ferry::choices
