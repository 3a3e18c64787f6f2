#include "vgpu/triton/launch.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<std::int32_t>;
using Ranges = std::vector<Range>;

class AdditionTest : public testing::Test {
 protected:
  Launched launched(bool masked = true) {
    Launched made(addition(masked));
    made.with(x_).with(y_).with(out_).with(std::int64_t{6}).on(2);
    return made;
  }
  Floats x_{1, 2, 3, 4, 5, 6};
  Floats y_{10, 20, 30, 40, 50, 60};
  Floats out_{0, 0, 0, 0, 0, 0};
};

TEST_F(AdditionTest, Computes) {
  launched().run();
  EXPECT_EQ(out_, (Floats{11, 22, 33, 44, 55, 66}));
}

TEST_F(AdditionTest, TellsExactRangesBeforeItRuns) {
  const Accesses accesses = launched().accesses();
  EXPECT_TRUE(accesses.is_exact);
  EXPECT_EQ(accesses.writes, Ranges{bytes_of(out_, 0, 6)});
  ASSERT_EQ(accesses.reads.size(), 2U);
  EXPECT_EQ(accesses.reads[0].bytes, 24U);
  EXPECT_EQ(out_, Floats(6, 0));
}

TEST_F(AdditionTest, AReadOutOfBoundsIsReportedWithItsLine) {
  for (const bool runs : {false, true}) {
    try {
      const Launched made = launched(false);
      runs ? made.run() : static_cast<void>(made.accesses());
      FAIL() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()),
                "kernel.py:7: kernel k reads 4 bytes out of bounds, at byte 24 of a tensor of 24 "
                "bytes");
    }
  }
}

TEST_F(AdditionTest, ALaunchNeedsEachArgument) {
  Launched made(addition());
  made.with(x_).with(y_).with(out_);
  EXPECT_THROW(made.run(), std::runtime_error);
}

TEST(LaunchTest, AnOperationThatIsNotRunIsRejectedByName) {
  const std::string text = kernel_text("%x: !tt.ptr<f32>", R"(
    %0 = tt.load %x : !tt.ptr<f32> loc(#loc)
    %1 = tt.unheard_of %0 : f32 loc(#loc1)
)");
  try {
    const Launched made(text);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()),
              "kernel.py:7: the virtual GPU does not run tt.unheard_of (kernel k)");
  }
}

// out[index[p]] = p
constexpr const char* kScatter = R"(
    %p = tt.get_program_id x : i32 loc(#loc)
    %0 = tt.addptr %index, %p : !tt.ptr<i32>, i32 loc(#loc)
    %1 = tt.load %0 : !tt.ptr<i32> loc(#loc)
    %2 = tt.addptr %out, %1 : !tt.ptr<i32>, i32 loc(#loc)
    tt.store %2, %p : !tt.ptr<i32> loc(#loc1)
)";

TEST(LaunchTest, WhereAddressesAreLoadedTheArgumentsStorageCountsAsAWhole) {
  Numbers index{4, 1};
  Numbers out(8, -1);
  Launched made(kernel_text("%index: !tt.ptr<i32>, %out: !tt.ptr<i32>", kScatter));
  made.with(index).with(out).on(2);
  const Accesses accesses = made.accesses();
  EXPECT_FALSE(accesses.is_exact);
  EXPECT_EQ(accesses.reads, Ranges{bytes_of(index, 0, 2)});
  EXPECT_EQ(accesses.writes, Ranges{bytes_of(out, 0, 8)});
  made.run();
  EXPECT_EQ(out, (Numbers{-1, 1, -1, -1, 0, -1, -1, -1}));
  index[0] = 8;
  EXPECT_THROW(made.run(), std::runtime_error);
}

// Each program writes as many elements of its row as its number says.
constexpr const char* kTriangle = R"(
    %c0 = arith.constant 0 : i32 loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %c4 = arith.constant 4 : i32 loc(#loc)
    %p = tt.get_program_id x : i32 loc(#loc)
    %row = arith.muli %p, %c4 : i32 loc(#loc)
    %sum = scf.for %i = %c0 to %p step %c1 iter_args(%s = %c0) -> (i32)  : i32 {
      %0 = arith.addi %row, %i : i32 loc(#loc)
      %1 = tt.addptr %out, %0 : !tt.ptr<i32>, i32 loc(#loc)
      %2 = arith.addi %s, %c1 : i32 loc(#loc)
      tt.store %1, %2 : !tt.ptr<i32> loc(#loc)
      scf.yield %2 : i32 loc(#loc)
    } loc(#loc)
    %odd = arith.andi %p, %c1 : i32 loc(#loc)
    %is = arith.cmpi eq, %odd, %c1 : i32 loc(#loc)
    %last = scf.if %is -> (i32) {
      scf.yield %sum : i32 loc(#loc)
    } else {
      %3 = arith.subi %c0, %sum : i32 loc(#loc)
      scf.yield %3 : i32 loc(#loc)
    } loc(#loc)
    %4 = tt.addptr %ends, %p : !tt.ptr<i32>, i32 loc(#loc)
    tt.store %4, %last : !tt.ptr<i32> loc(#loc)
)";

TEST(LaunchTest, ProgramsGoThroughLoopsAndBranchesOfTheirOwn) {
  Numbers out(16, 0);
  Numbers ends(4, 0);
  Launched made(kernel_text("%out: !tt.ptr<i32>, %ends: !tt.ptr<i32>", kTriangle));
  made.with(out).with(ends).on(4);
  made.run();
  EXPECT_EQ(out, (Numbers{0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 1, 2, 3, 0}));
  EXPECT_EQ(ends, (Numbers{0, 1, -2, 3}));
  const Accesses accesses = made.accesses();
  EXPECT_TRUE(accesses.is_exact);
  Ranges written{bytes_of(out, 4, 1), bytes_of(out, 8, 2), bytes_of(out, 12, 3),
                 bytes_of(ends, 0, 4)};
  std::sort(written.begin(), written.end(), [](Range a, Range b) { return a.address < b.address; });
  EXPECT_EQ(accesses.writes, written);
}

// out[row, column] = row * 10 + column of a tile whose rows are longer than the tensor's, with a
// mask, and each second element of another.
constexpr const char* kTiles = R"(
    %c2 = arith.constant dense<2> : tensor<4xi32> loc(#loc)
    %c10 = arith.constant dense<10> : tensor<4x1xi32> loc(#loc)
    %stride = arith.constant dense<5> : tensor<4x1xi32> loc(#loc)
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32> loc(#loc)
    %n4 = tt.splat %n : i32 -> tensor<4xi32> loc(#loc)
    %few = arith.cmpi slt, %i, %n4 : tensor<4xi32> loc(#loc)
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32> loc(#loc)
    %column = tt.expand_dims %i {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32> loc(#loc)
    %mask1 = tt.expand_dims %few {axis = 0 : i32} : tensor<4xi1> -> tensor<1x4xi1> loc(#loc)
    %mask = tt.broadcast %mask1 : tensor<1x4xi1> -> tensor<4x4xi1> loc(#loc)
    %0 = arith.muli %row, %stride : tensor<4x1xi32> loc(#loc)
    %1 = tt.splat %out : !tt.ptr<i32> -> tensor<4x1x!tt.ptr<i32>> loc(#loc)
    %2 = tt.addptr %1, %0 : tensor<4x1x!tt.ptr<i32>>, tensor<4x1xi32> loc(#loc)
    %3 = tt.broadcast %2 : tensor<4x1x!tt.ptr<i32>> -> tensor<4x4x!tt.ptr<i32>> loc(#loc)
    %4 = tt.broadcast %column : tensor<1x4xi32> -> tensor<4x4xi32> loc(#loc)
    %5 = tt.addptr %3, %4 : tensor<4x4x!tt.ptr<i32>>, tensor<4x4xi32> loc(#loc)
    %6 = arith.muli %row, %c10 : tensor<4x1xi32> loc(#loc)
    %7 = tt.broadcast %6 : tensor<4x1xi32> -> tensor<4x4xi32> loc(#loc)
    %8 = arith.addi %7, %4 : tensor<4x4xi32> loc(#loc)
    tt.store %5, %8, %mask : tensor<4x4x!tt.ptr<i32>> loc(#loc1)
    %9 = arith.muli %i, %c2 : tensor<4xi32> loc(#loc)
    %10 = tt.splat %other : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>> loc(#loc)
    %11 = tt.addptr %10, %9 : tensor<4x!tt.ptr<i32>>, tensor<4xi32> loc(#loc)
    tt.store %11, %i : tensor<4x!tt.ptr<i32>> loc(#loc)
)";

TEST(LaunchTest, TilesAreTouchedRowByRow) {
  Numbers out(20, -1);
  Numbers other(8, -1);
  Launched made(kernel_text("%out: !tt.ptr<i32>, %other: !tt.ptr<i32>, %n: i32", kTiles));
  made.with(out).with(other).with(std::int64_t{3});
  made.run();
  EXPECT_EQ(out,
            (Numbers{0, 1, 2, -1, -1, 10, 11, 12, -1, -1, 20, 21, 22, -1, -1, 30, 31, 32, -1, -1}));
  EXPECT_EQ(other, (Numbers{0, -1, 1, -1, 2, -1, 3, -1}));
  Ranges written;
  for (const std::size_t row : {0U, 1U, 2U, 3U}) {
    written.push_back(bytes_of(out, 5 * row, 3));
    written.push_back(bytes_of(other, 2 * row, 1));
  }
  std::sort(written.begin(), written.end(), [](Range a, Range b) { return a.address < b.address; });
  EXPECT_EQ(made.accesses().writes, written);
}

TEST(LaunchTest, NumbersOf32BitsWrapAround) {
  Numbers out(4, 0);
  Launched made(kernel_text("%out: !tt.ptr<i32>, %n: i32", R"(
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32> loc(#loc)
    %n4 = tt.splat %n : i32 -> tensor<4xi32> loc(#loc)
    %0 = arith.addi %i, %n4 : tensor<4xi32> loc(#loc)
    %1 = tt.splat %out : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>> loc(#loc)
    %2 = tt.addptr %1, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32> loc(#loc)
    %3 = arith.cmpi slt, %0, %n4 : tensor<4xi32> loc(#loc)
    %4 = arith.select %3, %i, %0 : tensor<4xi1>, tensor<4xi32> loc(#loc)
    tt.store %2, %4 : tensor<4x!tt.ptr<i32>> loc(#loc)
)"));
  made.with(out).with(std::int64_t{std::numeric_limits<std::int32_t>::max()}).run();
  EXPECT_EQ(out, (Numbers{std::numeric_limits<std::int32_t>::max(), 1, 2, 3}));
}

// A lock, as in Triton's tutorial 05: a program takes it, counts, and gives it back.
constexpr const char* kLock = R"(
    %true = arith.constant true loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %c0 = arith.constant 0 : i32 loc(#loc)
    scf.while : () -> () {
      %3 = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32 loc(#loc)
      %4 = arith.cmpi eq, %3, %c1 : i32 loc(#loc)
      scf.condition(%4) loc(#loc)
    } do {
      scf.yield loc(#loc)
    } loc(#loc)
    %0 = tt.load %count : !tt.ptr<i32> loc(#loc)
    %1 = arith.addi %0, %c1 : i32 loc(#loc)
    tt.store %count, %1 : !tt.ptr<i32> loc(#loc)
    %2 = tt.atomic_rmw exch, acq_rel, gpu, %lock, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32 loc(#loc)
)";

TEST(LaunchTest, ProgramsLeaveAWhileOneByOne) {
  Numbers out(4, 0);
  Numbers turns(4, 0);
  Launched made(kernel_text("%out: !tt.ptr<i32>, %turns: !tt.ptr<i32>", R"(
    %c0 = arith.constant 0 : i32 loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %c10 = arith.constant 10 : i32 loc(#loc)
    %p = tt.get_program_id x : i32 loc(#loc)
    %first = arith.addi %p, %c1 : i32 loc(#loc)
    %w:2 = scf.while (%x = %first, %n = %c0) : (i32, i32) -> (i32, i32) {
      %1 = arith.cmpi slt, %x, %c10 : i32 loc(#loc)
      scf.condition(%1) %x, %n : i32, i32 loc(#loc)
    } do {
    ^bb0(%y: i32 loc(unknown), %m: i32 loc(unknown)):
      %2 = arith.addi %y, %y : i32 loc(#loc)
      %3 = arith.addi %m, %c1 : i32 loc(#loc)
      scf.yield %2, %3 : i32, i32 loc(#loc)
    } loc(#loc)
    %4 = tt.addptr %out, %p : !tt.ptr<i32>, i32 loc(#loc)
    tt.store %4, %w#0 : !tt.ptr<i32> loc(#loc)
    %5 = tt.addptr %turns, %p : !tt.ptr<i32>, i32 loc(#loc)
    tt.store %5, %w#1 : !tt.ptr<i32> loc(#loc)
)"));
  made.with(out).with(turns).on(4);
  made.run();
  EXPECT_EQ(out, (Numbers{16, 16, 12, 16}));
  EXPECT_EQ(turns, (Numbers{4, 3, 2, 2}));
  EXPECT_TRUE(made.accesses().is_exact);
}

TEST(LaunchTest, ALockIsTakenByOneProgramAfterTheOther) {
  Numbers lock{0};
  Numbers count{0};
  Launched made(kernel_text("%lock: !tt.ptr<i32>, %count: !tt.ptr<i32>", kLock));
  made.with(lock).with(count).on(3, 5, 2);
  EXPECT_TRUE(made.kernel.is_sequential);
  made.run();
  EXPECT_EQ(count[0], 30);
  EXPECT_EQ(lock[0], 0);
}

TEST(LaunchTest, ALockThatNobodyGivesBackIsAnError) {
  Numbers lock{1};
  Numbers count{0};
  Launched made(kernel_text("%lock: !tt.ptr<i32>, %count: !tt.ptr<i32>", kLock));
  made.with(lock).with(count);
  EXPECT_THROW(made.run(), std::runtime_error);
}

TEST(LaunchTest, EachProgramExecutesAnAtomicOperation) {
  Numbers count{0};
  Launched made(kernel_text("%count: !tt.ptr<i32>", R"(
    %true = arith.constant true loc(#loc)
    %c3 = arith.constant 3 : i32 loc(#loc)
    %2 = tt.atomic_rmw add, relaxed, gpu, %count, %c3, %true : (!tt.ptr<i32>, i32, i1) -> i32 loc(#loc)
)"));
  made.with(count).on(7);
  EXPECT_FALSE(made.kernel.is_sequential);
  made.run();
  EXPECT_EQ(count[0], 21);
  EXPECT_EQ(made.accesses().reads, Ranges{bytes_of(count, 0, 1)});
}

TEST(LaunchTest, ProgramsThatReturnedDoNothingMore) {
  Numbers out(4, 0);
  Launched made(kernel_text("%out: !tt.ptr<i32>", R"(
    %c2 = arith.constant 2 : i32 loc(#loc)
    %p = tt.get_program_id x : i32 loc(#loc)
    %0 = arith.cmpi slt, %p, %c2 : i32 loc(#loc)
    cf.cond_br %0, ^bb1, ^bb2(%c2 : i32) loc(#loc)
  ^bb1:  // pred: ^bb0
    tt.return loc(#loc)
  ^bb2(%x: i32 loc(unknown)):  // pred: ^bb0
    %1 = tt.addptr %out, %p : !tt.ptr<i32>, i32 loc(#loc)
    tt.store %1, %x : !tt.ptr<i32> loc(#loc)
)"));
  made.with(out).on(4);
  made.run();
  EXPECT_EQ(out, (Numbers{0, 0, 2, 2}));
  EXPECT_EQ(made.accesses().writes, Ranges{bytes_of(out, 2, 2)});
}

TEST(LaunchTest, BlocksMayStandInAnyOrderAndNeverInACircle) {
  const auto text = [](const std::string& last) {
    return kernel_text("%out: !tt.ptr<i32>", R"(
    %c2 = arith.constant 2 : i32 loc(#loc)
    %p = tt.get_program_id x : i32 loc(#loc)
    %0 = arith.cmpi slt, %p, %c2 : i32 loc(#loc)
    %1 = tt.addptr %out, %p : !tt.ptr<i32>, i32 loc(#loc)
    cf.cond_br %0, ^bb2, ^bb3(%p : i32) loc(#loc)
  ^bb1:  // pred: ^bb3
    tt.return loc(#loc)
  ^bb3(%x: i32):  // 2 preds: ^bb0, ^bb2
    tt.store %1, %x : !tt.ptr<i32> loc(#loc)
    cf.br ^bb1 loc(#loc)
  ^bb2:  // pred: ^bb0
    %2 = arith.subi %p, %c2 : i32 loc(#loc)
    cf.br )" + last + " loc(#loc)\n  ^bb4:\n");
  };
  Numbers out(4, 0);
  Launched made(text("^bb3(%2 : i32)"));
  made.with(out).on(4).run();
  EXPECT_EQ(out, (Numbers{-2, -1, 2, 3}));
  EXPECT_THROW(Launched(text("^bb2")), std::runtime_error);
}

TEST(LaunchTest, ManyRangesAreCoveredByFew) {
  const Ranges storages{{0, 100}, {200, 100}};
  const Ranges ranges{{0, 4}, {8, 4}, {20, 4}, {200, 4}, {205, 4}};
  EXPECT_EQ(bounded(ranges, storages, 5), ranges);
  EXPECT_EQ(bounded(ranges, storages, 4), (Ranges{{0, 4}, {8, 4}, {20, 4}, {200, 9}}));
  EXPECT_EQ(bounded(ranges, storages, 3), (Ranges{{0, 12}, {20, 4}, {200, 9}}));
  EXPECT_EQ(bounded(ranges, storages, 1), (Ranges{{0, 24}, {200, 9}}));
}

}  // namespace
}  // namespace ferry::vgpu::triton
