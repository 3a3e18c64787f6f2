// Segments that a plan cannot have, as the users of `ferry plan` meet them.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/program_file.h"
#include "tests/cli/plan_folder.h"
#include "tests/sim/support/segmented.h"

namespace ferry::cli {
namespace {

class PlanSegmentsTest : public PlanFolder {};

// Its model would save other tensors than the plan's, and train with every segment run again.
TEST_F(PlanSegmentsTest, APlanOfPyTorchsCheckpointsSaysWhatToPutInTheirPlace) {
  Program program = test::segmented({{}, {}, {}}, {.inner_elements = 1 << 20});
  const auto said = [&] {
    write("foreign.jsonl", to_text(program));
    return ferry("plan -o p.json --policy checkpoint foreign.jsonl --card tiny.toml").err;
  };
  EXPECT_EQ(said(), "");
  program.about.emplace_back("checkpoints", "torch.utils.checkpoint");
  EXPECT_NE(said().find("note: p.json plans the model's checkpoints"), std::string::npos);
}

// A call of checkpoint that saves for a node made before it: no call can be put in its place.
TEST_F(PlanSegmentsTest, ACallThatCannotBeASegmentIsRefused) {
  Builder b;
  const Slot w = b.global(GlobalKind::kParameter, b.type({4}));
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const CodeId body = b.code(CodeKind::kBody, "B");
  b.result(body, b.argument(body));
  b.saved(body);
  const Slot y = b.slot(forward);
  const std::uint32_t node = b.node_id();
  b.add(forward, MakeNode{"N", node, {w}, {y}, {}, body});
  b.add(forward, Module{"checkpoint.0", true, std::vector<Slot>{w}});
  b.add(forward, Save{node, {w}});
  b.add(forward, Module{"checkpoint.0", false});
  b.result(forward, y);
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  write("cut.jsonl", to_text(b.program));
  expect_refused("plan cut.jsonl --card tiny.toml",
                 "cut.jsonl: module checkpoint.0 of line 8 cannot be a segment");
}

}  // namespace
}  // namespace ferry::cli
