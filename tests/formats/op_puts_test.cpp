#include "formats/op_puts.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "formats/layout.h"

namespace ferry {
namespace {

Layout tensor(std::vector<std::int64_t> shape) {
  return contiguous_layout(DType::kF32, std::move(shape));
}
Layout places(std::vector<std::int64_t> shape) {
  return contiguous_layout(DType::kI64, std::move(shape));
}

OpTraffic traffic(std::string_view name, const std::vector<Layout>& in, OpFlags flags = {}) {
  OpCall call{.name = name, .in = {}, .out = {}, .writes = {}, .flags = flags};
  for (const Layout& layout : in) call.in.push_back(&layout);
  if (name.ends_with("_")) {
    call.writes = {0};
  } else {
    call.out = {call.in[0]};
  }
  return put_traffic(call).value_or(OpTraffic{});
}

std::int64_t kernels(std::string_view name, const std::vector<Layout>& in, OpFlags flags = {}) {
  return traffic(name, in, flags).kernels;
}

const std::vector<Layout> kRows = {tensor({1000, 16}), places({20}), tensor({20, 16})};
constexpr std::int64_t kRow = 16 * 4, kWhole = 1000 * kRow;

TEST(OpPuts, WhatIsPutIsWrittenAndNoMore) {
  const OpTraffic put = traffic("aten.index_put_", kRows);
  EXPECT_EQ(put.kernels, 1);
  EXPECT_EQ(put.read_bytes, 20 * 8 + 20 * kRow);
  EXPECT_EQ(put.written_bytes, 20 * kRow);
  const OpTraffic of_new = traffic("aten.index_put", kRows);
  EXPECT_EQ(of_new.kernels, 2) << "of a copy";
  EXPECT_EQ(of_new.read_bytes, put.read_bytes + kWhole);
  EXPECT_EQ(of_new.written_bytes, put.written_bytes + kWhole);
}

// PyTorch 2.11's own code, over a runtime whose launches did nothing, launched 12.
TEST(OpPuts, IndexPutSortsWhatItAdds) {
  EXPECT_EQ(kernels("aten.index_put_", kRows, {.accumulate = true}), 12);
  EXPECT_EQ(kernels("aten._index_put_impl_", kRows, {.accumulate = true, .unsafe = true}), 6)
      << "an indexing's gradient does not look at bounds again";
  const std::vector<Layout> by_two = {tensor({100, 10, 16}), places({20}), places({20}),
                                      tensor({20, 16})};
  EXPECT_EQ(kernels("aten.index_put_", by_two, {.accumulate = true}), 12 + 6 + 2 + 1);
}

TEST(OpPuts, ManyIndicesAreSortedByAsManyPassesAsTheirNumbersHaveBytes) {
  const auto sorted = [](std::int64_t count, std::int64_t rows) {
    return kernels("aten._index_put_impl_",
                   {tensor({rows, 16}), places({count}), tensor({count, 16})},
                   {.accumulate = true, .unsafe = true});
  };
  EXPECT_EQ(sorted(2304, 50'000), 6);
  EXPECT_EQ(sorted(2305, 256), 5 + 2 + 1);
  EXPECT_EQ(sorted(2305, 257), 5 + 2 + 2);
  EXPECT_EQ(sorted(2305, 65'537), 5 + 2 + 3);
}

TEST(OpPuts, ScatterAddsByOneKernel) {
  const std::vector<Layout> in = {tensor({1000, 16}), places({20, 16}), tensor({20, 16})};
  const OpTraffic added = traffic("aten.scatter_add_", in);
  EXPECT_EQ(added.kernels, 1);
  EXPECT_EQ(added.read_bytes, 20 * 16 * 8 + 2 * 20 * kRow) << "what is added to, as well";
  EXPECT_EQ(added.written_bytes, 20 * kRow);
  EXPECT_EQ(kernels("aten.scatter_add", in), 2);
  EXPECT_EQ(kernels("aten.scatter_", in), 1);
  EXPECT_EQ(kernels("aten.index_add_", kRows), 1);
  EXPECT_EQ(kernels("aten.index_copy", kRows), 2);
}

TEST(OpPuts, ScatterReduceCopiesTwiceAndAMeanCounts) {
  const std::vector<Layout> in = {tensor({1000, 16}), places({20, 16}), tensor({20, 16})};
  EXPECT_EQ(kernels("aten.scatter_reduce_", in), 1);
  EXPECT_EQ(kernels("aten.scatter_reduce", in), 3);
  EXPECT_EQ(kernels("aten.scatter_reduce_", in, {.include_self = false}), 2);
  EXPECT_EQ(kernels("aten.scatter_reduce_", in, {.reduce_mean = true}), 7);
}

TEST(OpPuts, OtherOperatorsAreNone) {
  EXPECT_EQ(kernels("aten.index", kRows), 0);
  EXPECT_EQ(kernels("aten.index_put_", {tensor({4})}), 0);
}

}  // namespace
}  // namespace ferry
