// How a run's choices (sim/host_choices.h) are made up: at random, each in its turn, or again as
// they were.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/host_choices.h"
#include "sim/verify/draws.h"

namespace ferry::verify {

// Every answer is as likely as the others; memory runs out at one allocation at most.
class RandomChoices final : public sim::HostChoices {
 public:
  // out_of_memory_at: which allocation fails, from 0; negative: none.
  explicit RandomChoices(std::uint64_t seed, std::int64_t out_of_memory_at = -1)
      : draws_(seed), memory_left_(out_of_memory_at) {}

 private:
  std::uint32_t pick(sim::ChoicePoint point, std::uint32_t ways, std::uint64_t at) override;
  Draws draws_;
  std::int64_t memory_left_;
};

// The answers that were given before; 0 where nothing else was.
class ReplayedChoices final : public sim::HostChoices {
 public:
  // In the order of their places.
  explicit ReplayedChoices(std::vector<sim::Deviation> answers) : answers_(std::move(answers)) {}

 private:
  std::uint32_t pick(sim::ChoicePoint point, std::uint32_t ways, std::uint64_t at) override;
  std::vector<sim::Deviation> answers_;
  std::size_t next_ = 0;
};

// All ways to answer, run by run, the last choices first. A place beyond the bound, and memory
// beyond one failure in a run, goes its usual way.
//
//   Enumeration all(12);
//   do { EnumeratedChoices choices(all); run(choices); } while (all.next());
class Enumeration {
 public:
  explicit Enumeration(std::uint64_t places) : places_(places) {}
  // Goes to the next way; false: there is none.
  bool next();
  std::uint64_t runs() const { return runs_; }

 private:
  friend class EnumeratedChoices;
  struct Place {
    std::uint32_t answer = 0;
    std::uint32_t ways = 0;
  };
  std::uint64_t places_;
  std::uint64_t runs_ = 1;
  std::vector<Place> path_;
};

class EnumeratedChoices final : public sim::HostChoices {
 public:
  explicit EnumeratedChoices(Enumeration& all) : all_(all) {}

 private:
  std::uint32_t pick(sim::ChoicePoint point, std::uint32_t ways, std::uint64_t at) override;
  Enumeration& all_;
  bool out_of_memory_ = false;
};

}  // namespace ferry::verify
