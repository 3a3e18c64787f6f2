// What CUDA, PyTorch and the operating system leave open, as the host sees it. Wherever a run may
// go on in more than one legal way it asks here; the answer 0 is what happens where nobody is
// asked. (In which order a device runs what it was given is sim/explore's to try.)
//
// So a run is a function of its program and of the answers, which are written down as *deviations*:
// the answers that were not 0, each with its place in the row. A strategy makes up answers
// (sim/verify/strategies.h); replaying a run is giving them again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ferry::sim {

enum class ChoicePoint : std::uint8_t {
  kPoll,      // a pool's query: 1, the device is later or earlier than its clock says
  kPageable,  // a copy of pageable memory: 1, it does not block the host
  kEngine,    // backward: which device's engine thread runs its next node
  kWorker,    // pipelines: whose turn it is
  kMemory,    // an allocation: 1, out of memory
};
inline constexpr std::size_t kChoicePoints = 5;
inline constexpr std::array<std::string_view, kChoicePoints> kChoiceNames = {
    "poll", "pageable copy", "engine", "worker", "out of memory"};

struct Deviation {
  std::uint64_t at = 0;  // which of the run's choices, from 0
  std::uint32_t answer = 0;
  bool operator==(const Deviation&) const = default;
};

class HostChoices {
 public:
  HostChoices() = default;
  HostChoices(const HostChoices&) = delete;
  HostChoices& operator=(const HostChoices&) = delete;
  virtual ~HostChoices() = default;

  // In [0, ways). Where there is one way only, nothing is asked.
  std::uint32_t choose(ChoicePoint point, std::uint32_t ways) {
    if (ways < 2) return 0;
    ++asked_[static_cast<std::size_t>(point)];
    const std::uint32_t answer = pick(point, ways, count_);
    if (answer != 0) deviations_.push_back({count_, answer});
    ++count_;
    return answer;
  }

  std::uint64_t count() const { return count_; }
  const std::array<std::uint64_t, kChoicePoints>& asked() const { return asked_; }
  const std::vector<Deviation>& deviations() const { return deviations_; }

 private:
  // The answer to the run's choice number `at`.
  virtual std::uint32_t pick(ChoicePoint point, std::uint32_t ways, std::uint64_t at) = 0;

  std::uint64_t count_ = 0;
  std::array<std::uint64_t, kChoicePoints> asked_{};
  std::vector<Deviation> deviations_;
};

}  // namespace ferry::sim
