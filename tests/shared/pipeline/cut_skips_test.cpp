// The skip tensors of a stage whose graph is cut: what arrived is given up once, what crosses
// leaves, and what does neither stays inside.
#include "shared/pipeline/cut_skips.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;

class CutSkipsTest : public testing::Test {
 protected:
  using Skips = CutSkips<Value>;

  std::size_t route(const std::string& name) const { return layout_->find_crossing({name}); }
  static std::string error_of(Skips& skips, const std::string& name) {
    try {
      skips.load({name});
    } catch (const SkipError& error) {
      return error.what();
    }
    return "none";
  }
  test::PipelineRig rig_{1};
  const std::shared_ptr<const SkipLayout> layout_ = std::make_shared<const SkipLayout>(
      std::vector<SkipRoute>{{{"arrives"}, 0, 1}, {{"leaves"}, 1, 2}, {{"stays"}, 1, 1}});
};

TEST_F(CutSkipsTest, WhatArrivedIsGivenUpOnce) {
  const Value value{rig_.fresh(), {}};
  Skips skips(layout_, {{route("arrives"), value}});
  EXPECT_EQ(skips.load({"arrives"}).tensor, value.tensor);
  EXPECT_EQ(value.tensor.use_count(), 1);
  EXPECT_EQ(error_of(skips, "arrives"),
            "'arrives' is popped, but nothing is stashed under that name");
}

TEST_F(CutSkipsTest, WhatIsStashedTwiceLeavesAsItWasTheLastTime) {
  Skips skips(layout_, {});
  const Value last{rig_.fresh(), {}};
  skips.save({"leaves"}, {rig_.fresh(), {}});
  skips.save({"leaves"}, last);
  EXPECT_EQ(error_of(skips, "leaves"),
            "'leaves' is popped, but nothing is stashed under that name");
  const auto stashed = skips.stashed();
  ASSERT_EQ(stashed.size(), 1u);
  EXPECT_EQ(stashed.at(route("leaves")).tensor, last.tensor);
}

TEST_F(CutSkipsTest, WhatCrossesNoBorderStaysInside) {
  Skips skips(layout_, {});
  const Value value{rig_.fresh(), {}};
  skips.save({"stays"}, value);
  EXPECT_TRUE(skips.stashed().empty());
  EXPECT_EQ(skips.load({"stays"}).tensor, value.tensor);
  EXPECT_EQ(error_of(skips, "stays"), "'stays' is popped, but nothing is stashed under that name");
}

}  // namespace
}  // namespace ferry
