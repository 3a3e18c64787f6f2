// Extents: where they go, and what releasing them leaves.
#include "real/disk/extents.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace ferry::real {
namespace {

TEST(Extents, TheLowestThatFitsIsTaken) {
  Extents extents;
  for (const int bytes : {10, 1, 20, 1, 10, 1}) extents.allocate(bytes);
  extents.release(0, 10);
  extents.release(11, 20);
  extents.release(32, 10);
  EXPECT_EQ(extents.allocate(11), 11);
  EXPECT_EQ(extents.allocate(10), 0);
  EXPECT_EQ(extents.allocate(10), 32);
  EXPECT_EQ(extents.allocate(10), 43);
}

TEST(Extents, ARestStaysFree) {
  Extents extents;
  extents.allocate(10);
  extents.allocate(1);
  extents.release(0, 10);
  EXPECT_EQ(extents.allocate(4), 0);
  EXPECT_EQ(extents.allocate(6), 4);
  EXPECT_TRUE(extents.free().empty());
}

TEST(Extents, NeighboursJoin) {
  Extents extents;
  for (int i = 0; i < 4; ++i) extents.allocate(10);
  extents.release(0, 10);
  extents.release(20, 10);
  EXPECT_EQ(extents.free(), (Extents::Map{{0, 10}, {20, 10}}));
  extents.release(10, 10);
  EXPECT_EQ(extents.free(), (Extents::Map{{0, 30}}));
}

TEST(Extents, TheEndGoesBackToTheLastThatIsTaken) {
  Extents extents;
  for (int i = 0; i < 3; ++i) extents.allocate(10);
  extents.release(10, 10);
  extents.release(20, 10);
  EXPECT_EQ(extents.end(), 10);
  EXPECT_TRUE(extents.free().empty());
}

TEST(Extents, WhatIsNotTakenIsNotReleased) {
  Extents extents;
  extents.allocate(10);
  extents.allocate(10);
  EXPECT_THROW(extents.release(0, 5), std::logic_error);
  EXPECT_THROW(extents.release(5, 5), std::logic_error);
  EXPECT_THROW(extents.release(20, 10), std::logic_error);
  extents.release(0, 10);
  EXPECT_THROW(extents.release(0, 10), std::logic_error);
  EXPECT_EQ(extents.taken_bytes(), 10);
}

TEST(Extents, AnEmptyExtentIsRefused) {
  Extents extents;
  EXPECT_THROW(extents.allocate(0), std::invalid_argument);
  EXPECT_THROW(extents.allocate(-1), std::invalid_argument);
  EXPECT_EQ(extents.end(), 0);
}

TEST(Extents, WholeBlocksRoundUp) {
  EXPECT_EQ(whole_blocks(0), 0);
  EXPECT_EQ(whole_blocks(1), 4096);
  EXPECT_EQ(whole_blocks(4096), 4096);
  EXPECT_EQ(whole_blocks(4097), 8192);
}

}  // namespace
}  // namespace ferry::real
