#include "formats/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace ferry {
namespace {

TEST(ParallelTest, EachNumberIsCalledOnce) {
  for (const std::size_t count : {0u, 1u, 1000u}) {
    std::vector<int> calls(count, 0);
    in_parallel(count, [&calls](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST(ParallelTest, OneThreadIsTheCallersAndGoesInOrder) {
  std::vector<std::size_t> calls;
  in_parallel(
      5, [&calls](std::size_t i) { calls.push_back(i); }, 1);
  EXPECT_EQ(calls, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ParallelTest, WhatOneThrowsIsThrown) {
  const auto fails = [](std::size_t i) {
    if (i == 7) throw std::runtime_error("seven");
  };
  EXPECT_THROW(in_parallel(1000, fails), std::runtime_error);
}

}  // namespace
}  // namespace ferry
