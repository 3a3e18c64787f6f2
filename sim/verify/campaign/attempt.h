// One try: who, on what, and how everything was decided that is left open. Equal attempts give
// equal verdicts, so an attempt is what is shrunk, written down and replayed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/gpu/machine.h"
#include "sim/verify/mutants/mutants.h"
#include "sim/verify/programs/pipeline_net.h"
#include "sim/verify/programs/trial.h"
#include "sim/verify/schedulers/registry.h"

namespace ferry::verify {

struct Attempt {
  Mutant mutant = no_mutant();  // its part says which of the trials is meant
  const schedulers::SchedulerEntry* scheduler = nullptr;  // or who it is instead of the core
  std::uint64_t number = 0;                               // of its own programs, where it has some
  Trial trial;
  PipelineTrial pipeline;
  std::vector<choices::Deviation> deviations;

  bool is_pipeline() const { return mutant.part == MutantPart::kPipeline; }
};

std::optional<Verdict> try_attempt(const Attempt& attempt, StreamOpConsumer* watch = nullptr);
// The same program, but what is left open is for these choices to say; none: the usual ways.
std::optional<Verdict> try_attempt(const Attempt& attempt, choices::Choices* choices,
                                   StreamOpConsumer* watch);

// A program without answers.
Attempt draw_attempt(const Mutant& mutant, Draws& draws, Sizes sizes = Sizes::kMixed);

// Draws an attempt and makes it. In half of them the choices are drawn as well, and in some a call
// or an allocation fails: then `attempt` has what was drawn.
struct Tried {
  Attempt attempt;
  std::optional<Verdict> verdict;
  std::array<std::uint64_t, choices::kChoicePoints> asked{};
  bool chosen = false;  // other answers than failures were drawn
  bool failed = false;  // a call or an allocation did
  std::int64_t runs = 1;
  bool cut_off = false;  // there were other runs to come
};
Tried try_drawn(const Mutant& mutant, std::uint64_t seed, std::uint64_t number,
                StreamOpConsumer* watch = nullptr, Sizes sizes = Sizes::kMixed);

// Likewise of a scheduler of the field, in the usual ways.
Tried try_drawn(const schedulers::SchedulerEntry& scheduler, std::uint64_t seed,
                std::uint64_t number);

// One that the same oracle objects to, of which nothing can be taken away; `runs` bounds the work.
Attempt shrink(const Attempt& attempt, const Verdict& verdict, int runs = 5000);

// "consume.drop~AQEB...~3:1,17:2": who, the trial, the deviations where there are some.
std::string to_line(const Attempt& attempt);
// Throws InputError.
Attempt parse_line(std::string_view line);

// A mutant's name as one word: "consume.drop", "rule.keep-source". And back; "core" and "pipeline"
// are Ferry itself. None where there is no such mutant.
std::string word_of(const Mutant& mutant);
std::optional<Mutant> find_mutant(std::string_view word);

}  // namespace ferry::verify
