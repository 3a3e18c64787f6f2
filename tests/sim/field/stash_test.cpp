// The three races of a clone that is made on the copy stream (TRL, PR #5694), each by itself.
//
//   compute   x ──●                    a: x's block is given out while the clone is being made
//   copies        └─ clone ── D2H      b: backward finds the clone in the stash, and does not wait
//                                      c: the clone's block is given out while backward reads it
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "formats/builder.h"
#include "sim/field/stash.h"
#include "sim/run/simulation.h"
#include "sim/verify/trials/try_core.h"

namespace ferry::field {
namespace {

using Clone = StashPolicy::Clone;

std::vector<check::Hazard> hazards(const Program& program, Clone clone) {
  sim::SimulationOptions options;
  options.scheduler = [clone](const sim::SimDevice& device, const sim::SimAutograd& autograd) {
    return make_stash(device, autograd, {.clone = clone});
  };
  return sim::simulate(program, verify::test_hardware(), options).hazards;
}

bool found(const std::vector<check::Hazard>& all, check::HazardKind kind, std::string_view earlier,
           std::string_view later) {
  return std::any_of(all.begin(), all.end(), [&](const check::Hazard& hazard) {
    return hazard.kind == kind && hazard.earlier.name == earlier && hazard.later.name == later;
  });
}

// A step whose nodes each save one tensor and read it again.
class Steps {
 public:
  Steps()
      : type_(b_.type({kElements})), half_(b_.layout({DType::kBF16, {kElements / 2}, {1}, 64})) {
    weight_ = b_.global(GlobalKind::kParameter, type_);
    forward_ = b_.code(CodeKind::kSegment, "forward");
    x_ = weight_;
  }

  // The next activation, made by a kernel of that name.
  Slot make(const char* name) { return b_.op(forward_, name, {weight_}, type_); }
  Slot view(Slot of) { return b_.view(forward_, of, half_); }
  void free(std::vector<Slot> slots) { b_.add(forward_, Free{std::move(slots)}); }
  // A node that saves it, and whose backward reads it in a kernel of that name.
  void save(Slot saved, const char* reads) {
    const CodeId body = b_.code(CodeKind::kBody, reads);
    const Slot gradient = b_.argument(body);
    const Slot unpacked = b_.saved(body);
    b_.result(body, b_.op(body, reads, {gradient, unpacked}, type_));
    const Slot y = b_.op(forward_, "y", {x_}, type_);
    b_.add(forward_, MakeNode{reads, b_.node_id(), {x_}, {y}, {saved}, body});
    x_ = y;
  }
  Program run(bool backward) {
    b_.result(forward_, x_);
    const Slot result = b_.slot(0);
    b_.add(0, Call{forward_, {}, {result}});
    if (backward) b_.add(0, Backward{{result}, {}, {}, false, false});
    return b_.program;
  }

 private:
  static constexpr std::int64_t kElements = 40'000;
  Builder b_;
  TypeId type_, half_;
  Slot weight_ = 0;
  CodeId forward_ = 0;
  Slot x_ = 0;
};

TEST(StashCloneTest, TheOriginalIsReusedUnderTheClone) {
  Steps steps;
  const Slot x = steps.make("x");
  const Slot view = steps.view(x);
  steps.save(view, "reads");
  steps.free({x, view});
  steps.make("next");
  const Program program = steps.run(false);
  EXPECT_TRUE(
      found(hazards(program, Clone::kOnCopyStream), check::HazardKind::kReuse, "clone", "next"));
  EXPECT_TRUE(hazards(program, Clone::kOnCompute).empty());
}

TEST(StashCloneTest, BackwardReadsTheCloneBeforeItIsMade) {
  Steps steps;
  steps.save(steps.view(steps.make("x")), "reads");
  const Program program = steps.run(true);
  EXPECT_TRUE(found(hazards(program, Clone::kOnCopyStream), check::HazardKind::kReadAfterWrite,
                    "clone", "reads"));
  EXPECT_TRUE(hazards(program, Clone::kOnCompute).empty());
}

TEST(StashCloneTest, TheCloneIsReusedUnderBackward) {
  Steps steps;
  const Slot early = steps.make("early");
  steps.save(steps.view(early), "reads early");
  for (int i = 0; i < 5; ++i) steps.save(steps.make("x"), "reads between");
  steps.save(steps.view(early), "reads late");
  const Program program = steps.run(true);
  const auto found_now = hazards(program, Clone::kOnCopyStream);
  EXPECT_TRUE(found(found_now, check::HazardKind::kReuse, "reads late", "reload"));
  EXPECT_TRUE(hazards(program, Clone::kOnCompute).empty());
}

}  // namespace
}  // namespace ferry::field
