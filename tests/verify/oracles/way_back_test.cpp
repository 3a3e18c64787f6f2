#include "verify/oracles/way_back.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/decision_log.h"

namespace ferry::verify {
namespace {

// Every source has left its device.
class WayBackTest : public testing::Test {
 protected:
  WayBackTest() {
    options_.prefetch_bytes = 0;
    options_.hold_bytes = 1000;
  }
  WatchedSave& pack(std::int64_t bytes = 100, std::uint64_t run = 1) {
    auto parcel = std::make_shared<Parcel>();
    parcel->extent = {0, bytes};
    parcel->run = run;
    parcel->pack = parcel->sequence = next_++;
    way_back_.sent(parcel);
    return save(parcel);
  }
  WatchedSave& share(const WatchedSave& other) {
    ++next_;
    return save(other.parcel);
  }
  void unpack(WatchedSave& save) {
    way_back_.unpacks(save, next_, StreamId{});
    if (way_back_.looks_ahead(next_)) way_back_.look_ahead(save);
  }
  void end_task() {
    way_back_.let_go_of_task();
    way_back_.task_ended();
  }
  // What was decided since it was last asked, without the packs.
  std::string decided() {
    std::string text;
    for (const Decision& each : std::exchange(decided_, {})) {
      if (each.kind == DecisionKind::kPack) continue;
      text += (text.empty() ? "" : ", ") + std::string(name(each.kind)) + " " +
              std::to_string(each.pack);
    }
    return text;
  }

  CoreOptions options_;
  HostBytes host_;
  std::vector<Decision> decided_;
  WayBack way_back_{options_, host_, decided_};

 private:
  WatchedSave& save(const std::shared_ptr<Parcel>& parcel) {
    WatchedSave& made = saves_.emplace_back(WatchedSave{parcel->run, next_ - 1, parcel});
    parcel->saves.push_back(&made);
    return made;
  }
  std::uint64_t next_ = 0;
  std::deque<WatchedSave> saves_;
};

TEST_F(WayBackTest, WhatNobodyElseNeedsIsLetGoAtOnce) {
  WatchedSave& x = pack();
  way_back_.task_began();
  unpack(x);
  EXPECT_EQ(decided(), "release 0, unpack 0");
  end_task();
  way_back_.drops(x);
  EXPECT_EQ(decided(), "return 0");
}

TEST_F(WayBackTest, IsHeldForTheSavesThatTheTaskHasYetToUnpack) {
  WatchedSave& x = pack();
  WatchedSave& again = share(x);
  way_back_.task_began();
  unpack(x);
  unpack(x);
  EXPECT_EQ(decided(), "unpack 0, unpack 0");
  unpack(again);
  EXPECT_EQ(decided(), "release 0, unpack 0");
  unpack(x);
  EXPECT_EQ(decided(), "release 0, unpack 0") << "all of its saves were unpacked";
  end_task();
  way_back_.task_began();
  unpack(x);
  EXPECT_EQ(decided(), "unpack 0") << "another task";
  way_back_.drops(again);
  EXPECT_EQ(decided(), "release 0") << "what it was held for is gone";
}

TEST_F(WayBackTest, BeyondTheHoldGoesWhatWasPackedLast) {
  options_.hold_bytes = 250;
  std::vector<WatchedSave*> saves;
  for (int i = 0; i < 3; ++i) saves.push_back(&pack());
  for (int i = 0; i < 3; ++i) share(*saves[static_cast<std::size_t>(i)]);
  WatchedSave& large = pack(300);
  share(large);
  WatchedSave& larger = pack(301);
  share(larger);
  way_back_.task_began();
  unpack(larger);
  unpack(*saves[2]);
  unpack(*saves[1]);
  EXPECT_EQ(decided(), "unpack 8, unpack 2, unpack 1") << "one may be large";
  unpack(*saves[0]);
  EXPECT_EQ(decided(), "release 2, unpack 0");
  unpack(large);
  EXPECT_EQ(decided(), "release 8, unpack 6");
}

TEST_F(WayBackTest, WhatThatTaskWillUnpackComesAheadAsFarAsTheBoundGoes) {
  options_.prefetch_bytes = 250;
  for (int i = 0; i < 2; ++i) pack();
  WatchedSave& kept_for_other = pack();
  WatchedSave& b = pack();
  WatchedSave& a = pack();
  WatchedSave& last = pack();
  way_back_.task_began();
  unpack(kept_for_other);
  EXPECT_EQ(decided(), "release 2, unpack 2, prefetch 1, prefetch 0");
  end_task();
  EXPECT_EQ(decided(), "release 1, release 0");
  way_back_.task_began();
  unpack(last);
  EXPECT_EQ(decided(), "release 5, unpack 5, prefetch 4, prefetch 3");
  unpack(a);
  EXPECT_EQ(decided(), "release 4, unpack 4, prefetch 2");
  unpack(b);
  EXPECT_EQ(decided(), "release 3, unpack 3, prefetch 1");
}

TEST_F(WayBackTest, LooksNoFurtherThanItsWindowAndItsRun) {
  options_.prefetch_bytes = 1000;
  options_.prefetch_tensors = 2;
  pack(100, 1);
  std::vector<WatchedSave*> run;
  for (int i = 0; i < 5; ++i) run.push_back(&pack(100, 2));
  way_back_.task_began();
  unpack(*run[4]);
  EXPECT_EQ(decided(), "release 5, unpack 5, prefetch 4, prefetch 3");
  unpack(*run[2]);
  EXPECT_EQ(decided(), "release 3, unpack 3, prefetch 2, prefetch 1");
}

TEST_F(WayBackTest, ATaskLooksAtEachOnce) {
  options_.prefetch_bytes = 1000;
  options_.hold_bytes = 0;
  WatchedSave& x = pack();
  share(x);
  WatchedSave& y = pack();
  way_back_.task_began();
  unpack(y);
  EXPECT_EQ(decided(), "release 2, unpack 2, prefetch 0");
  unpack(x);
  EXPECT_EQ(decided(), "release 0, unpack 0");
  unpack(y);
  EXPECT_EQ(decided(), "release 2, unpack 2") << "x is needed again, and was looked at";
}

TEST_F(WayBackTest, ANestedTaskLeavesToTheOneAroundItWhatWasPackedBefore) {
  WatchedSave& first = pack();
  WatchedSave& before = pack();
  share(before);
  way_back_.task_began();
  unpack(first);
  EXPECT_EQ(decided(), "release 0, unpack 0");
  way_back_.task_began();
  unpack(before);
  WatchedSave& in_it = pack();
  share(in_it);
  unpack(in_it);
  EXPECT_EQ(decided(), "unpack 1, unpack 3");
  end_task();
  EXPECT_EQ(decided(), "release 3");
  end_task();
  EXPECT_EQ(decided(), "release 1");
}

}  // namespace
}  // namespace ferry::verify
