// Decides what CUDA, PyTorch, memory and faults leave open. Wherever a run may go on in several
// legal ways, it asks. The simulated host asks while it runs (Machine). sim/explore/schedule.h asks
// when it orders the actions of a recorded run. Answer 0 is what happens if nobody is asked.
//
// So a run is a function of its program and of the answers. The answers are written down as
// *deviations*: those that are not 0, each with the number of its question. A strategy makes up
// answers (sim/choices/strategies.h). To replay a run is to give the same answers again.
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
  kPoll,      // a pool queries an event: 1 gives the opposite of what the device's clock says
  kPageable,  // a copy of pageable memory: 1 does not block the host
  kEngine,    // backward: which device's engine thread runs its next node
  kWorker,    // pipelines: which worker goes on
  kMemory,    // an allocation: 1 fails with out of memory
  kFault,     // a step of the core: 1 makes the call fail
  kDevice,    // a recorded run: which stream's or host thread's next action runs
};
inline constexpr std::size_t kChoicePoints = 7;
inline constexpr std::array<std::string_view, kChoicePoints> kChoiceNames = {
    "poll", "pageable copy", "engine", "worker", "out of memory", "failing call", "device"};

constexpr bool is_failure(ChoicePoint point) {
  return point == ChoicePoint::kMemory || point == ChoicePoint::kFault;
}

struct Question {
  ChoicePoint point;
  std::uint32_t ways;                     // number of answers, 2 or more
  std::span<const std::uint32_t> actors;  // of a turn: who may go on, one for each way; else empty
  bool done = false;                      // kPoll: what the clock says
};

// How a turn touches something that other turns may touch too. A write conflicts with another
// turn's read or write. A turn that needs something must run after the turn that makes it.
enum class Access : std::uint8_t { kRead, kWrite, kMake, kNeed };

// The things that a turn can touch. A key is one of these with a number. Two turns that make
// unrelated things must give them different numbers, in whatever order they run. Nodes and queues
// belong to one row.
enum class Touched : std::uint8_t {
  kStream,
  kRecord,  // of an event
  kPool,
  kStorage,
  kGradient,
  kTask,   // of a worker
  kNode,   // of a backward: the gradients that reached it
  kQueue,  // the ready nodes of a device
};
inline constexpr unsigned kTouchedShift = 56;
constexpr std::uint64_t touch_key(Touched what, std::uint64_t number) {
  return (static_cast<std::uint64_t>(what) << kTouchedShift) | number;
}

struct Deviation {
  std::uint64_t at = 0;  // number of the question in the run, from 0
  std::uint32_t answer = 0;
  bool operator==(const Deviation&) const = default;
};

class Choices {
 public:
  Choices() = default;
  Choices(const Choices&) = delete;
  Choices& operator=(const Choices&) = delete;
  virtual ~Choices() = default;

  // Returns an answer in [0, ways). If there is only one way, nothing is asked.
  std::uint32_t choose(ChoicePoint point, std::uint32_t ways) { return ask({point, ways, {}}); }
  // Returns whether a pool's query finds the event done. `clock`: what the device's clock says.
  bool poll(bool clock) { return (ask({ChoicePoint::kPoll, 2, {}, clock}) == 0) == clock; }
  // Returns which of the actors goes on. Everything until the next question of this kind, or the
  // end of the row, is that actor's turn.
  std::uint32_t turn(ChoicePoint point, std::span<const std::uint32_t> actors) {
    const Question question{point, static_cast<std::uint32_t>(actors.size()), actors};
    const std::uint32_t answer = ask(question);
    took(question, answer);
    return answer;
  }
  // Records that the current turn touches something.
  void touch(Touched what, std::uint64_t number, Access access) {
    touched(touch_key(what, number), access);
  }
  // Turns come in rows: the tasks of a pipeline's workers, or the nodes of one backward. Work
  // before or after a row stays there in every order of the row's turns. Rows nest.
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
  // Returns the number of the first failure, counted from 0 over all calls that might have failed.
  std::optional<std::uint64_t> failure() const { return failure_; }

 private:
  // Answers question number count() of the run.
  virtual std::uint32_t pick(const Question& question) = 0;
  // For strategies that go through orders (turn_orders.h). took() is also called for turns without
  // a choice.
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
