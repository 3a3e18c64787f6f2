#include "sim/check/interval_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ferry::check {
namespace {

struct Shift {
  void operator()(std::uint64_t& value, std::uint64_t distance) const { value += distance; }
};
using Map = IntervalMap<std::uint64_t, Shift>;

template <class M>
std::string text(const M& map) {
  std::string all;
  map.visit(0, ~std::uint64_t{0}, [&](std::uint64_t begin, std::uint64_t end, const auto& value) {
    all += "[" + std::to_string(begin) + "," + std::to_string(end) + ")=" + std::to_string(value);
  });
  return all;
}

TEST(IntervalMap, AReplacementCutsWhatSticksOut) {
  Map map;
  map.replace(0, 100, 1000);
  map.replace(40, 60, 7);
  EXPECT_EQ(text(map), "[0,40)=1000[40,60)=7[60,100)=1060");
}

TEST(IntervalMap, EraseLeavesAGap) {
  Map map;
  map.replace(0, 100, 0);
  map.erase(10, 20);
  EXPECT_EQ(text(map), "[0,10)=0[20,100)=20");
  EXPECT_EQ(map.find(10), nullptr);
  EXPECT_EQ(*map.find(20), 20u);
}

TEST(IntervalMap, CoveringIsOnePieceOrNone) {
  Map map;
  map.replace(10, 20, 1);
  map.replace(20, 30, 2);
  EXPECT_EQ(*map.covering(10, 20), 1u);
  EXPECT_EQ(*map.covering(22, 23), 2u);
  EXPECT_EQ(map.covering(15, 25), nullptr);
  EXPECT_EQ(map.covering(5, 15), nullptr);
  EXPECT_EQ(map.covering(25, 35), nullptr);
  EXPECT_EQ(map.covering(40, 50), nullptr);
}

TEST(IntervalMap, UpdateFillsGapsAndModifyDoesNot) {
  Map map;
  map.replace(10, 20, 5);
  const auto set = [](std::uint64_t, std::uint64_t, std::uint64_t& value) { value += 100; };
  map.modify(0, 15, set);
  EXPECT_EQ(text(map), "[10,15)=105[15,20)=10");
  map.update(12, 30, set);
  EXPECT_EQ(text(map), "[10,12)=105[12,15)=207[15,20)=110[20,30)=100");
}

TEST(IntervalMap, TouchDoesNotCut) {
  Map map;
  map.replace(0, 10, 1);
  map.touch(5, 6, [](std::uint64_t, std::uint64_t, std::uint64_t& value) { value = 2; });
  EXPECT_EQ(text(map), "[0,10)=2");
}

TEST(IntervalMap, MergeShowsTheOldPiecesAndMakesOne) {
  IntervalMap<int> map;
  map.replace(0, 10, 1);
  map.replace(20, 30, 2);
  std::string seen;
  map.merge(5, 25, [&](std::uint64_t begin, std::uint64_t end, int value) {
    seen += std::to_string(begin) + "-" + std::to_string(end) + ":" + std::to_string(value) + " ";
  }) = 3;
  EXPECT_EQ(seen, "5-10:1 20-25:2 ");
  EXPECT_EQ(text(map), "[0,5)=1[5,25)=3[25,30)=2");
}

TEST(IntervalMap, AnEmptyRangeTouchesNothing) {
  Map map;
  map.replace(5, 5, 1);
  map.update(7, 7, [](std::uint64_t, std::uint64_t, std::uint64_t&) { FAIL(); });
  map.replace(0, 10, 1);
  map.erase(5, 5);
  EXPECT_EQ(text(map), "[0,10)=1");
}

TEST(IntervalMap, ManyPiecesAndBackToNone) {
  IntervalMap<int> map;
  const std::uint64_t pieces = 10000;
  // 7919 is prime to 10000: every address once, in no order.
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const std::uint64_t at = i * 7919 % pieces * 8;
    map.replace(at, at + 8, static_cast<int>(at));
  }
  ASSERT_EQ(map.size(), pieces);
  for (std::uint64_t at = 0; at < pieces * 8; at += 8) ASSERT_EQ(*map.find(at + 7), at);
  map.erase(0, pieces * 8);
  EXPECT_EQ(map.size(), 0u);
  map.replace(3, 4, 1);
  EXPECT_EQ(text(map), "[3,4)=1");
}

}  // namespace
}  // namespace ferry::check
