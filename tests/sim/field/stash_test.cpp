// The three races of a clone that is made on the copy stream (TRL, PR #5694), each by itself.
//
//   compute   x ──●                    a: x's block is given out while the clone is being made
//   copies        └─ clone ── D2H      b: backward finds the clone in the stash, and does not wait
//                                      c: the clone's block is given out while backward reads it
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "sim/field/stash.h"
#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/saving_steps.h"

namespace ferry::field {
namespace {

using Clone = StashPolicy::Clone;
using Steps = test::SavingSteps;

std::vector<check::Hazard> hazards(const Program& program, Clone clone) {
  sim::SimulationOptions options;
  options.scheduler = [clone](const sim::SimDevice& device, const sim::SimAutograd& autograd) {
    return make_stash(device, autograd, {.clone = clone});
  };
  return sim::simulate(program, sim::test_hardware(), options).hazards;
}

bool found(const std::vector<check::Hazard>& all, check::HazardKind kind, std::string_view earlier,
           std::string_view later) {
  return std::any_of(all.begin(), all.end(), [&](const check::Hazard& hazard) {
    return hazard.kind == kind && hazard.earlier.name == earlier && hazard.later.name == later;
  });
}

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
