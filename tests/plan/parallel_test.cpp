#include "plan/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace ferry::plan {
namespace {

TEST(ParallelTest, EachNumberIsCalledOnce) {
  for (const std::size_t count : {0u, 1u, 1000u}) {
    std::vector<int> calls(count, 0);
    in_parallel(count, [&calls](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST(ParallelTest, WhatOneThrowsIsThrown) {
  const auto fails = [](std::size_t i) {
    if (i == 7) throw std::runtime_error("seven");
  };
  EXPECT_THROW(in_parallel(1000, fails), std::runtime_error);
}

}  // namespace
}  // namespace ferry::plan
