// The ranges of random access patterns are those that plain code finds, element by element, and the
// bytes that the kernel changes. A tensor that is one element too short is noticed.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

// Element (i, j) of program p is at p * programs + i * rows + j * columns + start, of those with
// i < below_i and j < below_j. The tile is 4 x 8.
struct Pattern {
  std::int64_t programs, rows, columns, start, below_i, below_j;
  bool by_ramps;  // addresses are sums for each axis; if not, of numbers that a product made
};

Pattern drawn_pattern(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t count) {
    return static_cast<std::int64_t>(random() % count);
  };
  return {below(20), below(12), below(4), below(9), 1 + below(5), 1 + below(9), below(2) == 0};
}

std::string number(const std::string& name, std::int64_t value, const std::string& type) {
  const std::string text = std::to_string(value);
  return "    %" + name + " = arith.constant " + (type == "i32" ? text : "dense<" + text + ">") +
         " : " + type + "\n";
}

// Writes 1 to each element of the pattern.
std::string pattern_text(const Pattern& pattern) {
  const std::string spread = pattern.by_ramps ? "" : R"(
    %square = arith.muli %columns, %columns : tensor<8xi32>
    %zero = arith.subi %square, %square : tensor<8xi32>
    %some = arith.minsi %columns, %last : tensor<8xi32>
    %lanes = arith.addi %some, %zero : tensor<8xi32>
)";
  const std::string lanes = pattern.by_ramps ? "%columns" : "%lanes";
  return kernel_text("%out: !tt.ptr<i32>", number("a", pattern.programs, "i32") +
                                               number("b", pattern.rows, "tensor<4xi32>") +
                                               number("c", pattern.columns, "tensor<8xi32>") +
                                               number("first", pattern.start, "i32") +
                                               number("below_i", pattern.below_i, "tensor<4xi32>") +
                                               number("below_j", pattern.below_j, "tensor<8xi32>") +
                                               number("last", 7, "tensor<8xi32>") +
                                               number("one", 1, "tensor<4x8xi32>") + R"(
    %p = tt.get_program_id x : i32
    %rows = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %columns = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
)" + spread + R"(
    %i = arith.muli %rows, %b : tensor<4xi32>
    %j = arith.muli )" + lanes + R"(, %c : tensor<8xi32>
    %mask_i = arith.cmpi slt, %rows, %below_i : tensor<4xi32>
    %mask_j = arith.cmpi slt, %columns, %below_j : tensor<8xi32>
    %i_2 = tt.expand_dims %i {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
    %j_2 = tt.expand_dims %j {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
    %i_all = tt.broadcast %i_2 : tensor<4x1xi32> -> tensor<4x8xi32>
    %j_all = tt.broadcast %j_2 : tensor<1x8xi32> -> tensor<4x8xi32>
    %offset = arith.addi %i_all, %j_all : tensor<4x8xi32>
    %of_program = arith.muli %p, %a : i32
    %begin = arith.addi %of_program, %first : i32
    %from = tt.addptr %out, %begin : !tt.ptr<i32>, i32
    %from_all = tt.splat %from : !tt.ptr<i32> -> tensor<4x8x!tt.ptr<i32>>
    %at = tt.addptr %from_all, %offset : tensor<4x8x!tt.ptr<i32>>, tensor<4x8xi32>
    %mask_i2 = tt.expand_dims %mask_i {axis = 1 : i32} : tensor<4xi1> -> tensor<4x1xi1>
    %mask_j2 = tt.expand_dims %mask_j {axis = 0 : i32} : tensor<8xi1> -> tensor<1x8xi1>
    %mask_ia = tt.broadcast %mask_i2 : tensor<4x1xi1> -> tensor<4x8xi1>
    %mask_ja = tt.broadcast %mask_j2 : tensor<1x8xi1> -> tensor<4x8xi1>
    %mask = arith.andi %mask_ia, %mask_ja : tensor<4x8xi1>
    tt.store %at, %one, %mask : tensor<4x8x!tt.ptr<i32>>
)");
}

constexpr std::int64_t kPatternPrograms = 3;

std::set<std::int64_t> touched(const Pattern& pattern) {
  std::set<std::int64_t> elements;
  for (std::int64_t p = 0; p < kPatternPrograms; ++p) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(pattern.below_i, 4); ++i) {
      for (std::int64_t j = 0; j < std::min<std::int64_t>(pattern.below_j, 8); ++j) {
        elements.insert(p * pattern.programs + i * pattern.rows + j * pattern.columns +
                        pattern.start);
      }
    }
  }
  return elements;
}

std::set<std::int64_t> elements_of(const std::vector<Range>& ranges, std::uint64_t begin) {
  std::set<std::int64_t> elements;
  for (const Range range : ranges) {
    for (std::uint64_t at = range.address; at < range.end(); at += 4) {
      elements.insert(static_cast<std::int64_t>(at - begin) / 4);
    }
  }
  return elements;
}

TEST(AccessesDrawnTest, RangesAreTheBytesThatAKernelChanges) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Pattern pattern = drawn_pattern(seed);
    std::vector<std::int32_t> out(128, 0);
    Launched launched(pattern_text(pattern));
    launched.with(out).on(kPatternPrograms);
    const auto begin = reinterpret_cast<std::uint64_t>(out.data());
    const std::set<std::int64_t> told = elements_of(launched.accesses().writes, begin);
    ASSERT_EQ(told, touched(pattern)) << "seed " << seed << "\n" << pattern_text(pattern);
    launched.run();
    std::set<std::int64_t> changed;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != 0) changed.insert(static_cast<std::int64_t>(i));
    }
    ASSERT_EQ(changed, told) << "seed " << seed;
  }
}

TEST(AccessesDrawnTest, ATensorThatIsOneElementShortIsNoticed) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Pattern pattern = drawn_pattern(seed);
    const std::int64_t last = *touched(pattern).rbegin();
    std::vector<std::int32_t> out(static_cast<std::size_t>(last) + 1, 0);
    Launched launched(pattern_text(pattern));
    launched.with(out).on(kPatternPrograms);
    ASSERT_NO_THROW(launched.accesses()) << "seed " << seed;
    launched.launch.memory[0].bytes -= 4;
    ASSERT_THROW(launched.accesses(), std::runtime_error) << "seed " << seed;
    ASSERT_THROW(launched.run(), std::runtime_error) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ferry::vgpu::triton
