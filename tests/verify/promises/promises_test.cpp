// What holds whatever the program is holds, and each judge of it objects where it does not.
#include "verify/promises/promises.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/verify/trials/verdicts.h"
#include "verify/promises/adaptors.h"
#include "verify/promises/again.h"
#include "verify/promises/calls.h"
#include "verify/promises/counts.h"
#include "verify/promises/defaults.h"
#include "verify/promises/groups.h"
#include "verify/promises/layouts.h"
#include "verify/promises/offloader_by_hand.h"
#include "verify/promises/refusals.h"
#include "verify/promises/shapes.h"

namespace ferry::verify {
namespace {

TEST(Promises, TheCoreKeepsThem) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ASSERT_EQ(words(judge_promises(seed)), "") << seed;
  }
}

TEST(Defaults, AreAsTheyAreDocumented) {
  CoreOptions ours, trl = trl_options();
  CoreCheckpointOptions checkpoint;
  ours.bytes_min = 1025;
  EXPECT_EQ(words(judge_defaults(ours)),
            "error: by default an offloader's bytes_min is 1025, not 1024");
  trl.window_packs = 6;
  EXPECT_EQ(words(judge_defaults({}, trl)), "error: of TRL's options window_packs is 6, not 5");
  checkpoint.debug = true;
  EXPECT_EQ(words(judge_defaults({}, trl_options(), checkpoint)),
            "error: by default a checkpoint's debug is 1, not 0");
}

TEST(Counts, AddUp) {
  const auto forgets = [](OffloadStatistics sum, const OffloadStatistics&) { return sum; };
  EXPECT_EQ(words(judge_counting(forgets)),
            "accounts: of offloaders' counts the sum is 1001, not "
            "1003");
}

// A core that takes everything.
TEST(Refusals, WhatHasNoSenseMustBeRefused) {
  Refusing core;
  core.check_options = [](const CoreOptions&) {};
  EXPECT_EQ(words(judge_refusals(core)),
            "error: it must say \"bytes_min should be at least 0 but is -1\", not \"\"");
  core = {};
  core.make_schedule = [](auto...) {};
  EXPECT_EQ(words(judge_refusals(core)),
            "error: it must say \"gpipe: expected at least one device, one stage and one "
            "micro-batch\", not \"\"");
  core = {};
  core.balance = [](auto...) {};
  EXPECT_EQ(words(judge_refusals(core)),
            "error: it must say \"expected at least one part to balance\", not \"\"");
}

// The judge's objection to a core without the rule.
template <class Judge>
std::string without_rule(const Judge& judge, Rule rule) {
  return objection([&](choices::Draws& draws) { return judge(draws, Rules::without(rule)); });
}

TEST(Shapes, AChainsLastSegmentIsNoCheckpoint) {
  EXPECT_EQ(without_rule(judge_shapes, Rule::kLastPlain), "cut: a chain of 4 functions in 1");
}

TEST(Layouts, ATensorThatNoLayerPopsIsRefusedAndNamespacesAreApart) {
  EXPECT_NE(without_rule(judge_layouts, Rule::kPopStashed), "");
  EXPECT_EQ(without_rule(judge_layouts, Rule::kSpacesApart),
            "error: a layout has other routes than were declared");
}

// Rules of which a recompute's errors, counts and random numbers tell.
TEST(Again, ACheckpointSaysWhatWentWrongAndRunsAsOftenAsItMust) {
  for (const Rule rule :
       {Rule::kStopAtLast, Rule::kStopEarly, Rule::kFreshOutside, Rule::kGroupKey,
        Rule::kRefuseTwice, Rule::kReplayRandom, Rule::kCheckRecompute, Rule::kFreeUnneeded,
        Rule::kFreeUnpacked, Rule::kSkipDead, Rule::kKeepChosen}) {
    EXPECT_NE(without_rule(judge_recomputes, rule), "") << name(rule);
  }
}

// Forgets all that it is told, or nothing.
struct Forgetful {
  template <class Callback>
  void at_end(const std::shared_ptr<std::size_t>&, const Callback&) {}
};
struct Tenacious {
  ~Tenacious() {
    for (const auto& callback : callbacks) callback();
  }
  void at_end(const std::shared_ptr<std::size_t>&, std::function<void()> callback) {
    callbacks.push_back(std::move(callback));
  }
  std::vector<std::function<void()>> callbacks;
};

TEST(Groups, TellThoseThatWaitForTheirEndAndNobodyElse) {
  EXPECT_EQ(objection(judge_groups<Forgetful>),
            "leak: a group's end is not told to those that wait for it");
  EXPECT_EQ(objection(judge_groups<Tenacious>),
            "leak: a group keeps the callbacks of owners that are gone");
}

TEST(Calls, ASegmentSavesWhatIsSavedInItAndTheInputsOfThoseInIt) {
  EXPECT_NE(without_rule(judge_calls, Rule::kOuterInputs), "");
}

TEST(Adaptors, AnObserverHearsOfTheBytes) {
  const auto hears = [](DeviceCall call) {
    call.bytes = 0;
    return call;
  };
  EXPECT_EQ(objection([&](choices::Draws& draws) { return judge_adaptors(draws, hears); }),
            "error: an observer is told of other calls");
}

TEST(OffloaderByHand, WarnsInTheseWords) {
  const auto hears = [](const std::string& text) { return text + "!"; };
  EXPECT_NE(objection([&](choices::Draws& draws) { return judge_offloader(draws, hears); }), "");
}

}  // namespace
}  // namespace ferry::verify
