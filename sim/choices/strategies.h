// Strategies answer the questions of a run (sim/choices/choices.h). Each is a class:
//
//   RandomChoices      random answers, all equally likely
//   PctChoices         Burckhardt, Kothari, Musuvathi, Nagarakatte 2010: the actor with the highest
//                      random priority goes on. At `changes` random turns, that actor gets the
//                      lowest priority instead. Finds a bug of depth changes + 1 with probability ≥
//                      1 / (actors · turns^changes).
//   EnumeratedChoices  every combination of answers within bounds, one run after the other
//   ReplayedChoices    the answers of an earlier run
//   OneFailure         the answers of another strategy, but one call or allocation fails
//
// Random numbers come from a counter (sim/choices/draws.h), so equal seeds give equal answers
// everywhere. RandomChoices and PctChoices let nothing fail.
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

// One instance answers one run. Questions that are not turns get random answers.
class PctChoices final : public Choices {
 public:
  // `turns`: about how many turns the run will have.
  PctChoices(std::uint64_t seed, std::uint64_t turns, unsigned changes);

 private:
  std::uint32_t pick(const Question& question) override;
  std::uint64_t& priority(ChoicePoint point, std::uint32_t actor);

  Draws draws_;
  std::array<std::vector<std::uint64_t>, kChoicePoints> priorities_;  // by actor; 0: not chosen yet
  std::vector<std::uint64_t> changes_;                                // turns
  std::uint64_t turn_ = 0;
  std::uint64_t lowest_;  // the lowest priority so far; each change takes the next lower one
};

class ReplayedChoices final : public Choices {
 public:
  // `answers` must be in the order of their questions. Every other question gets the answer 0.
  explicit ReplayedChoices(std::vector<Deviation> answers) : answers_(std::move(answers)) {}
  // Returns how many of them were given so far, by point.
  const std::array<std::uint64_t, kChoicePoints>& given() const { return given_; }

 private:
  std::uint32_t pick(const Question& question) override;
  std::vector<Deviation> answers_;
  std::size_t next_ = 0;
  std::array<std::uint64_t, kChoicePoints> given_{};
};

// Goes through all combinations of answers, the last questions first, with at most one failure in a
// run.
//
//   Enumeration all({.deviations = 2});
//   do { EnumeratedChoices choices(all); run(choices); } while (all.next());
class Enumeration {
 public:
  struct Bounds {
    std::uint64_t places =
        std::numeric_limits<std::uint64_t>::max();  // number of questions; later ones get 0
    std::uint64_t deviations = std::numeric_limits<std::uint64_t>::max();  // answers that are not 0
    bool failures = true;                                                  // also try failures
  };
  explicit Enumeration(Bounds bounds) : bounds_(bounds) {}
  // Goes to the next combination. Returns false if there is none.
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
  // nth: number of the failing call or allocation, from 0, over all that might fail. others:
  // answers the rest; null: the answers are 0.
  explicit OneFailure(std::uint64_t nth, Choices* others = nullptr) : left_(nth), others_(others) {}

 private:
  std::uint32_t pick(const Question& question) override;
  std::uint64_t left_;
  Choices* others_;
};

}  // namespace ferry::choices
