// What a replay has made: there from the call that makes it until nothing needs it.
#include "shared/replay/remade.h"

#include <gtest/gtest.h>

#include <memory>

namespace ferry {
namespace {

TEST(RemadeStoragesTest, AStorageIsThereFromItsCallUntilItIsDropped) {
  RemadeStorages<std::shared_ptr<int>> made(2);
  const auto seven = std::make_shared<int>(7);
  made.put(1, seven);
  made.put(0, std::make_shared<int>(5));
  EXPECT_EQ(made.at(1), seven);
  EXPECT_EQ(*made.at(0), 5);
  made.drop(1);
  EXPECT_EQ(seven.use_count(), 1);
  EXPECT_EQ(*made.at(0), 5);
}

}  // namespace
}  // namespace ferry
