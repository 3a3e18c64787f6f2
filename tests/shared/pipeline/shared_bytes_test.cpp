// Which stage may write in place what it is given: that depends on who else has the bytes, as views
// or as copies on other devices, and on whether the stage is to run again.
#include "shared/pipeline/shared_bytes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using Tensor = std::optional<sim::Tensor>;

class SharedBytesTest : public testing::Test {
 protected:
  using Given = Crossings<Tensor>;

  Tensor fresh() { return rig_.fresh(); }
  static Tensor view(const Tensor& of) {
    auto view = std::make_shared<sim::TensorImpl>(**of);
    view->is_view = true;
    return view;
  }
  static void write(const Tensor& tensor) { ++(*tensor)->version->value; }

  // Stage `number` gets these, writes one of them, and makes those. Returns the error, after which
  // it is as if it had not run.
  std::string runs(std::size_t number, const Given& given, const Tensor& written, const Given& made,
                   bool again = false) {
    const auto before = bytes_;
    bytes_.enter(device_, given);
    if (written) write(written);
    try {
      bytes_.leave(device_, made, number, again);
    } catch (const ValueError& error) {
      bytes_ = before;
      return error.what();
    }
    return "none";
  }

  static constexpr std::size_t kA = 0, kB = 1;  // routes
  test::PipelineRig rig_{1};
  sim::SimDevice device_{rig_.machine(), 0};
  SharedBytes<sim::SimDevice> bytes_{
      std::make_shared<const SkipLayout>(std::vector<SkipRoute>{{{"a"}, 0, 2}, {{"b"}, 0, 3}}),
      PipelineRules(Rules())};
};

TEST_F(SharedBytesTest, WhatNobodyElseHasMayBeWrittenUnlessTheStageRunsAgain) {
  const Tensor x = fresh(), y = fresh(), other = fresh();
  EXPECT_EQ(runs(0, {{x}, {}}, {}, {{y, Tensor()}, {{kA, other}}}), "none");
  EXPECT_EQ(runs(1, {{y, Tensor()}, {}}, y, {{y}, {}}), "none");
  EXPECT_EQ(runs(1, {{y}, {}}, {}, {{y}, {}}, true), "none");
  EXPECT_EQ(runs(1, {{y}, {}}, other, {{y}, {}}, true), "none");
  EXPECT_EQ(runs(1, {{y}, {}}, y, {{y}, {}}, true),
            "stage 1 writes in place its input, and could not run again on it");
  EXPECT_EQ(runs(2, {{y}, {{kA, other}}}, other, {{y}, {}}), "none");
}

TEST_F(SharedBytesTest, WhatAStageThatRunsAgainPopsItMayNotWrite) {
  const Tensor y = fresh(), skip = fresh();
  EXPECT_EQ(runs(0, {}, {}, {{y}, {{kA, skip}}}), "none");
  EXPECT_EQ(runs(2, {{y}, {{kA, skip}}}, skip, {}, true),
            "stage 2 writes in place what it popped as 'a', and could not run again on it");
}

TEST_F(SharedBytesTest, BytesOfASkipTensorOnItsWay) {
  const Tensor y = fresh();
  EXPECT_EQ(runs(0, {}, {}, {{y}, {{kB, view(y)}}}), "none");
  EXPECT_EQ(runs(1, {{y}, {}}, y, {}),
            "stage 1 writes in place its input, whose bytes are those of the skip tensor 'b' as "
            "well: expected a clone of the one or the other");
}

// Each way has a copy there, and each copy a counter.
TEST_F(SharedBytesTest, CopiesOnAnotherDeviceHaveTheBytesOfWhatTheyAreCopiesOf) {
  const std::string of_b =
      ", whose bytes are those of the skip tensor 'b' as well: expected a "
      "clone of the one or the other";
  const Tensor y = fresh();
  EXPECT_EQ(runs(0, {}, {}, {{y}, {{kA, y}, {kB, y}}}), "none");
  const Tensor passed = fresh();
  EXPECT_EQ(runs(1, {{passed}, {}}, {}, {{view(passed)}, {}}), "none");
  const Tensor x = fresh(), popped = fresh();
  EXPECT_EQ(runs(2, {{x}, {{kA, popped}}}, popped, {}),
            "stage 2 writes in place what it popped as 'a'" + of_b);
  EXPECT_EQ(runs(2, {{x}, {{kA, popped}}}, {}, {{x}, {}}), "none");
  const Tensor last = fresh(), rest = fresh();
  EXPECT_EQ(runs(3, {{last}, {{kB, rest}}}, last, {}), "stage 3 writes in place its input" + of_b);
}

TEST_F(SharedBytesTest, BytesOfTwoThatAStageIsGiven) {
  const std::string of_other =
      ", whose bytes are those of another of its inputs as well: expected "
      "a clone of the one or the other";
  const Tensor y = fresh(), z = fresh();
  EXPECT_EQ(runs(0, {}, {}, {{y, z, view(y)}, {{kA, z}}}), "none");
  EXPECT_EQ(runs(1, {{fresh(), z, fresh()}, {}}, {}, {{y, z, y}, {}}), "none");
  const Tensor first = fresh(), second = fresh(), third = fresh(), skip = fresh();
  const Given given = {{first, second, third}, {{kA, skip}}};
  EXPECT_EQ(runs(2, given, third, {}), "stage 2 writes in place its input" + of_other);
}

// Of the caller's tensors, too.
TEST_F(SharedBytesTest, TheFirstStagesInputsMayBeOneTensor) {
  const Tensor x = fresh();
  EXPECT_EQ(runs(0, {{x, fresh()}, {}}, x, {}), "none");
  EXPECT_NE(runs(0, {{x, view(x)}, {}}, x, {}), "none");
}

// When it was popped, its way is at its end.
TEST_F(SharedBytesTest, WhatWasPoppedIsNobodysAnyMore) {
  const Tensor y = fresh();
  EXPECT_EQ(runs(0, {}, {}, {{y}, {{kA, y}}}), "none");
  EXPECT_EQ(runs(2, {{y}, {{kA, y}}}, {}, {{y}, {}}), "none");
  EXPECT_EQ(runs(3, {{y}, {}}, y, {}), "none");
}

TEST_F(SharedBytesTest, TensorsWithoutACounterAreNotOneAnothers) {
  const auto uncounted = [this] {
    const Tensor value = fresh();
    (*value)->version->identity = 0;
    return value;
  };
  const Tensor y = uncounted();
  EXPECT_EQ(runs(0, {}, {}, {{y, uncounted()}, {{kA, uncounted()}}}), "none");
  EXPECT_EQ(runs(1, {{y, fresh()}, {}}, y, {}), "none");
}

}  // namespace
}  // namespace ferry
