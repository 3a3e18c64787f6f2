// A run spec that was drawn is repeated, written down and read, and made smaller.
#include "verify/campaign/run_spec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "formats/error.h"
#include "tests/sim/support/in_range.h"
#include "verify/campaign/drawn_run.h"
#include "verify/campaign/replay_line.h"
#include "verify/campaign/shrink_spec.h"
#include "verify/core/core_trials.h"
#include "verify/oracles/determinism.h"
#include "verify/report/report.h"

namespace ferry::verify {
namespace {

using test::in_range;

// The core, a mutant of it, or a scheduler; with choices and faults, as campaigns draw them.
DrawnRun any_drawn_run(StreamOpConsumer* watch = nullptr) {
  const auto seed = static_cast<std::uint64_t>(*in_range(0, 1'000'000));
  const auto mutants = all_mutants();
  const int who = *in_range(0, 4);
  if (who == 0) return try_drawn(core_trials(), no_mutant(), seed, 0, watch);
  if (who == 1) return try_drawn(core_trials(), no_mutant(MutantPart::kPipeline), seed, 0, watch);
  const auto chosen = static_cast<std::size_t>(*in_range(0, static_cast<int>(mutants.size())));
  return try_drawn(core_trials(), mutants[chosen], seed, 0, watch);
}

std::string words(const std::optional<Verdict>& verdict) {
  return verdict ? to_string(*verdict) : "";
}

TEST(RunSpecProp, WhatWasDrawnIsRepeated) {
  EXPECT_TRUE(rc::check("the same operations, the same verdict", [] {
    OpDigest first, second;
    const DrawnRun drawn = any_drawn_run(&first);
    const auto again = try_spec(drawn.spec, &second);
    RC_ASSERT(words(again) == words(drawn.verdict));
    RC_ASSERT(first.value() == second.value());
    RC_CLASSIFY(!drawn.spec.deviations.empty(), "choices");
    RC_CLASSIFY(drawn.verdict.has_value(), "a verdict");
  }));
}

// Choices that all were the usual ones are no deviations: the run without them is the same.
TEST(RunSpecProp, UsualChoicesAreAsNone) {
  int usual = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    OpDigest first, second;
    const DrawnRun drawn =
        try_drawn(core_trials(), no_mutant(MutantPart::kPipeline), 7, number, &first);
    if (!drawn.spec.deviations.empty()) continue;
    try_spec(drawn.spec, &second);
    EXPECT_EQ(first.value(), second.value()) << to_line(drawn.spec);
    usual += drawn.asked != decltype(drawn.asked){} ? 1 : 0;
  }
  EXPECT_GE(usual, 10);
}

// A run goes another way where its choices are left out: else the digest says nothing.
TEST(RunSpecProp, ChoicesMatter) {
  int other = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    OpDigest first, second;
    DrawnRun drawn = try_drawn(core_trials(), no_mutant(), 5, number, &first);
    if (drawn.spec.deviations.empty()) continue;
    drawn.spec.deviations.clear();
    try_spec(drawn.spec, &second);
    other += first.value() != second.value() ? 1 : 0;
  }
  EXPECT_GE(other, 10);
}

TEST(RunSpecProp, ALineIsReadAsItWasWritten) {
  EXPECT_TRUE(rc::check("parse_line(to_line(a)) is a", [] {
    const RunSpec spec = any_drawn_run().spec;
    const std::string line = to_line(spec);
    const RunSpec read = parse_line(line, {&core_trials()});
    RC_ASSERT(to_line(read) == line);
    RC_ASSERT(word_of(read.mutant) == word_of(spec.mutant));
    RC_ASSERT(words(try_spec(read)) == words(try_spec(spec)));
  }));
}

TEST(RunSpecProp, AnotherLineIsRefused) {
  EXPECT_TRUE(rc::check("a letter changed or cut off", [] {
    std::string line = to_line(any_drawn_run().spec);
    const std::size_t begin = line.find('~') + 1;
    const std::size_t end = std::min(line.find('~', begin), line.size());
    if (*in_range(0, 2) == 0) {
      line.resize(begin + static_cast<std::size_t>(*in_range(0, static_cast<int>(end - begin))));
    } else {
      const auto at = begin + static_cast<std::size_t>(*in_range(0, static_cast<int>(end - begin)));
      // (The last letter may have bits that say nothing.)
      RC_PRE(at + 1 < end);
      line[at] = line[at] == 'A' ? 'B' : 'A';
    }
    RC_ASSERT_THROWS_AS(parse_line(line, {&core_trials()}), InputError);
  }));
}

TEST(RunSpec, LinesThatSayNothingAreRefused) {
  for (const char* line :
       {"", "core", "core~", "nobody~AAAA", "core~AAAA~1:1~x.1", "core~!!", "pipeline~AAAAAA"}) {
    EXPECT_THROW(parse_line(line, {&core_trials()}), InputError) << line;
  }
  const std::string good = to_line(try_drawn(core_trials(), no_mutant(), 1, 1).spec);
  const std::string trial = good.substr(0, good.find('~', good.find('~') + 1));
  EXPECT_NO_THROW(parse_line(trial + "~3:1,17:2", {&core_trials()}));
  for (const char* more : {"~3", "~3:", "~3:1,3:1", "~17:2,3:1", "~x:1", "~3:1~", "~3:1~3:1"}) {
    EXPECT_THROW(parse_line(trial + more, {&core_trials()}), InputError) << more;
  }
}

TEST(RunSpec, SmallerOnesFailAlike) {
  int shrunk = 0;
  for (const Mutant& mutant : all_mutants()) {
    const DrawnRun drawn = try_drawn(core_trials(), mutant, 21, 0);
    if (!drawn.verdict || drawn.spec.is_pipeline()) continue;
    const Report before = explain(drawn.spec);
    const Report after = explain(shrink_spec(drawn.spec, *drawn.verdict));
    EXPECT_EQ(name(after.verdict->oracle), name(drawn.verdict->oracle)) << mutant.name;
    EXPECT_LE(after.device_operations, before.device_operations) << mutant.name;
    shrunk += after.device_operations < before.device_operations ? 1 : 0;
  }
  EXPECT_GE(shrunk, 10);
}

}  // namespace
}  // namespace ferry::verify
