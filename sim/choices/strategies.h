// Strategies answer the questions of a run (sim/choices/choices.h). Each is a class:
//
//   RandomChoices      every answer alike
//   PctChoices         Burckhardt, Kothari, Musuvathi, Nagarakatte 2010: of those whose turn it may
//                      be the one of the highest priority goes on; at `changes` random turns it
//                      falls to the bottom. Finds a bug of depth changes + 1 with probability ≥ 1 /
//                      (actors · turns^changes).
//   EnumeratedChoices  one way after the other, within bounds, until there is none left
//   ReplayedChoices    the answers that were given before
//   OneFailure         beside another strategy: one call, or allocation, fails
//
// Numbers are drawn from a counter (sim/choices/draws.h): equal seeds give equal answers
// everywhere. Nothing fails by itself in random and PCT.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/choices/draws.h"

namespace ferry::choices {

class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(std::uint64_t seed) : draws_(seed) {}

 private:
  std::uint32_t pick(const Question& question) override;
  Draws draws_;
};

// An instance answers one run. What is not a turn is answered at random.
class PctChoices final : public Choices {
 public:
  // `turns` says about how many there will be.
  PctChoices(std::uint64_t seed, std::uint64_t turns, unsigned changes);

 private:
  std::uint32_t pick(const Question& question) override;
  std::uint64_t& priority(ChoicePoint point, std::uint32_t actor);

  Draws draws_;
  std::array<std::vector<std::uint64_t>, kChoicePoints> priorities_;  // by actor; 0: not drawn yet
  std::vector<std::uint64_t> changes_;                                // turns
  std::uint64_t turn_ = 0;
  std::uint64_t lowest_;  // below those at the start: each change takes the next one down
};

class ReplayedChoices final : public Choices {
 public:
  // The answers come in the order of their places; everything else is answered with 0.
  explicit ReplayedChoices(std::vector<Deviation> answers) : answers_(std::move(answers)) {}
  // Returns how many of them were given, by point.
  const std::array<std::uint64_t, kChoicePoints>& given() const { return given_; }

 private:
  std::uint32_t pick(const Question& question) override;
  std::vector<Deviation> answers_;
  std::size_t next_ = 0;
  std::array<std::uint64_t, kChoicePoints> given_{};
};

// Goes through all ways to answer, the last questions first, with at most one failure in a run.
//
//   Enumeration all({.deviations = 2});
//   do { EnumeratedChoices choices(all); run(choices); } while (all.next());
class Enumeration {
 public:
  struct Bounds {
    std::uint64_t places =
        std::numeric_limits<std::uint64_t>::max();  // questions; 0 to those after
    std::uint64_t deviations = std::numeric_limits<std::uint64_t>::max();  // answers that are not 0
    bool failures = true;                                                  // also what may fail
  };
  explicit Enumeration(Bounds bounds) : bounds_(bounds) {}
  // Goes to the next way; returns false where there is none.
  bool next();
  std::uint64_t runs() const { return runs_; }

 private:
  friend class EnumeratedChoices;
  struct Place {
    std::uint32_t answer = 0;
    std::uint32_t ways = 0;
  };
  Bounds bounds_;
  std::uint64_t runs_ = 1;
  std::vector<Place> path_;
};

class EnumeratedChoices final : public Choices {
 public:
  explicit EnumeratedChoices(Enumeration& all) : all_(all) {}

 private:
  std::uint32_t pick(const Question& question) override;
  Enumeration& all_;
};

class OneFailure final : public Choices {
 public:
  // nth: of all that may fail, from 0. others: answers the rest; none: 0.
  explicit OneFailure(std::uint64_t nth, Choices* others = nullptr) : left_(nth), others_(others) {}

 private:
  std::uint32_t pick(const Question& question) override;
  std::uint64_t left_;
  Choices* others_;
};

}  // namespace ferry::choices
