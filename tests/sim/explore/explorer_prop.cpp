// Happens-before against schedules: what it reports, a schedule shows; where it is silent, no
// schedule shows anything. Each property fails for a checker that is wrong: one that is told of a
// program with less order or fewer accesses than the one that runs, or with more.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/check/happens_before.h"
#include "sim/choices/strategies.h"
#include "sim/explore/explorer.h"
#include "tests/sim/support/repair.h"
#include "tests/sim/support/stream_program.h"

namespace ferry::explore {
namespace {

constexpr std::uint64_t kOrders = 20'000;  // of one program, at most

Recording record(const test::StreamProgram& program) {
  Recording recording;
  program.each([&](const StreamOp& op) { recording(op); });
  return recording;
}

std::string words(const Explorer& explorer, const Witness& witness) {
  return "silent, but " + to_string(explorer.graph(), witness.schedule) + ": " +
         to_string(explorer, witness);
}

// Properties of a program that runs and of the one that the checker is told of, which are the same
// unless the checker is to be wrong. What is wrong with the verdict; empty where nothing is.
using Property = std::string (*)(const test::StreamProgram& runs, const test::StreamProgram& told);

std::string all_confirmed(const test::StreamProgram& runs, const test::StreamProgram& told) {
  const Recording recording = record(runs);
  const Explorer explorer(recording, true);
  for (const check::Hazard& hazard : test::hazards_of(told)) {
    const auto result = explorer.confirm(hazard).result;
    if (result == Confirmation::Result::kUnconfirmed || result == Confirmation::Result::kNotARace) {
      return "unconfirmed: " + to_string(hazard);
    }
  }
  return "";
}

std::string silence_iff_equal(const test::StreamProgram& runs, const test::StreamProgram& told) {
  const Recording recording = record(runs);
  const Explorer explorer(recording, true);
  const std::vector<check::Hazard> hazards = test::hazards_of(told);
  const bool races = std::any_of(hazards.begin(), hazards.end(), [&](const check::Hazard& hazard) {
    return explorer.confirm(hazard).result != Confirmation::Result::kUndefined;
  });
  // Reports of what was never defined: nothing is claimed, and others may stand behind them.
  if (!races && !hazards.empty()) return "";
  const Search search = explorer.search_all(kOrders);
  if (!races && search.witness) return words(explorer, *search.witness);
  if (races && search.complete) return "no schedule shows " + to_string(hazards[0]);
  return "";
}

std::string draws_are_equal(const test::StreamProgram& runs, const test::StreamProgram& told) {
  if (!test::hazards_of(told).empty()) return "";
  const Recording recording = record(runs);
  const Explorer explorer(recording, true);
  choices::RandomChoices random(1);
  Search search = explorer.search(random, 20);
  for (unsigned seed = 0; seed < 20 && !search.witness; ++seed) {
    choices::PctChoices pct(seed, explorer.graph().size(), seed % 4);
    search = explorer.search(pct, 1);
  }
  return search.witness ? words(explorer, *search.witness) : "";
}

// What a wrong checker believes the program to be; ops keep their numbers.
using Change = test::StreamProgram (*)(test::StreamProgram);

template <StreamOpKind kKind>
test::StreamProgram without(test::StreamProgram program) {
  for (test::StreamProgram::Call& call : program.calls) {
    if (call.op.kind == kKind) forget(call);
  }
  return program;
}
test::StreamProgram without_kernels_reads(test::StreamProgram program) {
  for (test::StreamProgram::Call& call : program.calls) {
    if (call.op.kind == StreamOpKind::kKernel) call.reads.clear();
  }
  return program;
}
test::StreamProgram on_one_stream(test::StreamProgram program) {
  for (test::StreamProgram::Call& call : program.calls) call.op.stream = StreamId{};
  return program;
}
test::StreamProgram without_last_wait(test::StreamProgram program) {
  for (std::size_t i = program.calls.size(); i-- > 0;) {
    if (program.calls[i].op.kind != StreamOpKind::kWait) continue;
    forget(program.calls[i]);
    break;
  }
  return program;
}

test::StreamProgram as_is(test::StreamProgram program) { return program; }

void hold(Property property, const test::ProgramShape& shape, Change change = as_is) {
  const auto draws = rc::gen::container<std::vector<test::Draw>>(rc::gen::arbitrary<test::Draw>());
  const auto programs =
      *rc::gen::resize(80, rc::gen::container<std::vector<std::vector<test::Draw>>>(10, draws));
  for (const std::vector<test::Draw>& draw : programs) {
    const test::StreamProgram program = change(test::make_program(draw, shape));
    const std::string wrong = property(program, program);
    if (!wrong.empty()) RC_LOG() << wrong << "\n" << to_text(program);
    RC_ASSERT(wrong == "");
  }
}

// Whether the property fails on some of 400 safe programs that run, or are told, changed.
bool fails(Property property, Change runs, Change told, const test::ProgramShape& shape) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const test::StreamProgram program =
        test::repaired(test::make_program(test::draw_program(seed), shape));
    if (!property(runs(program), told(program)).empty()) return true;
  }
  return false;
}

constexpr test::ProgramShape kSmall{.accesses = 7}, kSmallSpread{.accesses = 9, .cells = 24};
constexpr test::ProgramShape kLarge{.accesses = 40}, kLargeSpread{.accesses = 60, .cells = 32};

TEST(ExploreProp, EveryReportedRaceHasASchedule) {
  EXPECT_TRUE(rc::check("confirm() finds a witness", [] { hold(all_confirmed, kLarge); }));
  // Who does not know of an order reports what no schedule shows.
  EXPECT_TRUE(fails(all_confirmed, as_is, without<StreamOpKind::kWait>, kLarge));
  EXPECT_TRUE(fails(all_confirmed, as_is, without_last_wait, kLarge));
  EXPECT_TRUE(fails(all_confirmed, as_is, without<StreamOpKind::kRecordUse>, kLarge));
  EXPECT_TRUE(fails(all_confirmed, as_is, without<StreamOpKind::kAcquire>, kLarge));
}

TEST(ExploreProp, SilenceMeansThatAllSchedulesSeeTheSame) {
  EXPECT_TRUE(rc::check("any program", [] { hold(silence_iff_equal, kSmall); }));
  EXPECT_TRUE(
      rc::check("safe ones", [] { hold(silence_iff_equal, kSmallSpread, test::repaired); }));
  EXPECT_TRUE(rc::check("safe but for one wait", [] {
    hold(silence_iff_equal, kSmallSpread,
         [](test::StreamProgram p) { return without_last_wait(test::repaired(std::move(p))); });
  }));
  EXPECT_TRUE(fails(silence_iff_equal, as_is, without<StreamOpKind::kWait>, kSmallSpread));
  EXPECT_TRUE(fails(silence_iff_equal, without_last_wait, as_is, kSmallSpread));
  EXPECT_TRUE(fails(silence_iff_equal, without_last_wait, without_kernels_reads, kSmallSpread));
  EXPECT_TRUE(fails(silence_iff_equal, without_last_wait, on_one_stream, kSmallSpread));
}

TEST(ExploreProp, DrawnSchedulesOfSafeProgramsDoNotDiffer) {
  EXPECT_TRUE(
      rc::check("random and PCT", [] { hold(draws_are_equal, kLargeSpread, test::repaired); }));
  EXPECT_TRUE(fails(draws_are_equal, without_last_wait, as_is, kLargeSpread));
  EXPECT_TRUE(fails(draws_are_equal, without<StreamOpKind::kRecordUse>, as_is, kLarge));
}

}  // namespace
}  // namespace ferry::explore
