// Assertions: what one that fails says, and that no error of the user's is lost by it.
#include "shared/seam/invariant.h"

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <stdexcept>
#include <string>

namespace ferry {
namespace {

TEST(InvariantTest, OneThatHoldsDoesNothing) {
  invariant(true, "all is well");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(InvariantTest, OneThatFailsEndsTheProcessAndSaysWhatAndWhere) {
  EXPECT_DEATH(invariant(false, "water is wet"), "this does not hold: water is wet");
  EXPECT_DEATH(invariant(false, "water is wet"), "at shared/seam/invariant_test.cpp:[0-9]+\n");
  EXPECT_DEATH(invariant(false, "water is wet", Step::kEvict), ", step `evict`");
  // And nothing more: no error is on its way.
  EXPECT_EXIT(invariant(false, "water is wet"), testing::KilledBySignal(SIGABRT),
              "a fault of Ferry's, not of your program: please report it with these lines\n$");
}

TEST(InvariantTest, OneThatNobodyToldIsOfNoLine) { EXPECT_EQ(BrokenInvariant().line, 0U); }

TEST(InvariantTest, AFileIsNamedFromTheRepositorysRootOn) {
  using invariant_detail::path_of;
  EXPECT_EQ(path_of("/somebody/shared/ferry/shared/seam/step.h"), "shared/seam/step.h");
  EXPECT_EQ(path_of("other.h"), "other.h");
}

void fails_while_an_error_is_handled() {
  try {
    throw std::runtime_error("the user's own");
  } catch (...) {
    invariant(false, "water is wet");
  }
}

TEST(InvariantTest, AnErrorThatIsHandledIsToldBesideIt) {
  EXPECT_DEATH(fails_while_an_error_is_handled(),
               "water is wet\n.*\n.*while this error was handled: the user's own");
}

void fails_while_a_number_is_handled() {
  try {
    throw 7;
  } catch (...) {
    invariant(false, "water is wet");
  }
}

TEST(InvariantTest, ThatIsNoStdExceptionEither) {
  EXPECT_DEATH(fails_while_a_number_is_handled(),
               "while an error was handled that is no std::exception");
}

struct FailsAtItsEnd {
  ~FailsAtItsEnd() { invariant(false, "water is wet"); }
};

// What the error says is known to its handler alone, which it reaches.
void fails_while_an_error_is_on_its_way(bool goes_on) {
  try {
    const FailsAtItsEnd fails;
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error& error) {
    std::fputs(error.what(), stderr);
  }
  if (goes_on) invariant(true, "all is well");
  std::exit(7);
}

TEST(InvariantTest, AnErrorThatIsOnItsWayArrives) {
  EXPECT_EXIT(fails_while_an_error_is_on_its_way(false), testing::ExitedWithCode(7),
              "water is wet(.|\n)*on its way to your program, which comes first\nthe user's own");
}

TEST(InvariantTest, TheProcessEndsOnceTheErrorHasArrived) {
  EXPECT_EXIT(fails_while_an_error_is_on_its_way(true), testing::KilledBySignal(SIGABRT),
              "the user's own(.|\n)*the process ends for what did not hold before");
}

std::string noted;
void note(const BrokenInvariant& broken) noexcept { noted = broken.words; }

TEST(InvariantTest, AHandlerMayNoteItAndGoOn) {
  const InvariantHandler before = set_invariant_handler(note);
  invariant(false, "water is wet");
  EXPECT_EQ(noted, "water is wet");
  EXPECT_EQ(set_invariant_handler(before), &note);
  EXPECT_EQ(before, &end_process);
}

}  // namespace
}  // namespace ferry
