// Ferry's own offloader, adapted as a user adapts a scheduler that has hooks already: through the
// same door as any other, it is clean, with calls that fail as well; a decision that is taken
// wrongly is found.
#include <gtest/gtest.h>

#include <memory>

#include "ferry/verify.h"
#include "shared/offload/offloader.h"
#include "sim/run/core.h"

namespace ferry::verify {
namespace {

template <class D, class A>
class Core {
 public:
  using Tensor = typename D::Tensor;
  Core(D device, A autograd, CoreOptions options, Rules rules)
      : offloader_(std::move(device), std::move(autograd), std::move(options), rules) {}
  std::shared_ptr<Hooks<Tensor>> hooks() { return offloader_.hooks(); }
  void exempt(const Tensor& tensor) { offloader_.exempt(tensor); }
  void begin_forward() { offloader_.begin_run(); }
  bool empty() const { return offloader_.empty(); }

 private:
  Offloader<D, A> offloader_;
};

HuntedScheduler core(Rules rules = {}) {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_tensors = 1;
  options.prefetch_bytes = 4096;
  HuntedScheduler scheduler = hunted<Core>("core-of-mine", options, rules);
  scheduler.survives_failures = true;
  scheduler.moves_once = true;
  return scheduler;
}

TEST(HuntCore, IsClean) {
  const Hunt found = hunt(core(), {.programs = 800});
  EXPECT_FALSE(found.report) << found.report->text;
  EXPECT_GT(found.coverage.failures, 20);
}

TEST(HuntCore, IsCleanInEveryWay) {
  const Hunt found = hunt(core(), {.programs = 20, .small = true, .every_way = 1});
  EXPECT_FALSE(found.report) << found.report->text;
}

TEST(HuntCore, AWrongDecisionIsFound) {
  const Hunt found = hunt(core(Rules::without(Rule::kKeepSource)), {.programs = 2000});
  ASSERT_TRUE(found.report);
}

}  // namespace
}  // namespace ferry::verify
