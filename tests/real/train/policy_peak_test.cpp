// With no option but the policy, offloading lowers a training's peak: for every model of `ferry
// train` as it is by default, and for drawn ones. What a step needs is counted above what the model
// and its optimizer have when it begins.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "ferry/hooks.h"
#include "real/train/memory.h"
#include "real/train/options.h"
#include "real/train/policy.h"
#include "real/train/random.h"
#include "real/train/workload.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

// Of the second step: the first one makes the optimizer's moments.
std::int64_t peak_above_own(const Options& options) {
  const auto workload = make_workload(options);
  workload->module().train();
  torch::optim::AdamW optimizer(workload->module().parameters());
  Policy policy(options, *workload);
  std::int64_t above = 0;
  for (std::int64_t step = 0; step < 2; ++step) {
    const StepMemory memory{c10::Device(c10::kCPU)};
    const std::int64_t own = live_bytes();
    {
      const auto guard = policy.guard();
      workload->loss(workload->batch(step)).backward();
    }
    above = memory.peak_bytes() - own;
    optimizer.step();
    optimizer.zero_grad();
  }
  return above;
}

double lowered_to(const std::string& model) {
  const auto keep = static_cast<double>(peak_above_own(test::parse(model)));
  return static_cast<double>(peak_above_own(test::parse(model + " --policy offload"))) / keep;
}

TEST(PolicyPeak, OffloadLowersItForEveryModelAsItIsByDefault) {
  test::Folder folder;
  for (const std::string& model :
       {"gpt --data " + folder.text(), "llama --data " + folder.text(), std::string("resnet")}) {
    const double ratio = lowered_to(model);
    EXPECT_LE(ratio, 0.7) << model;
    std::cout << model.substr(0, model.find(' ')) << " " << ratio << "\n";
  }
}

// What a step saves, each storage once, and the largest of them.
struct Saved {
  std::int64_t bytes = 0;
  std::int64_t largest = 0;
};
Saved saved(const Options& options) {
  const auto workload = make_workload(options);
  std::set<const void*> parameters, seen;
  for (const auto& parameter : workload->module().parameters()) {
    parameters.insert(parameter.storage().data());
  }
  Saved sum;
  const SavedTensorsHooks hooks(
      [&](const torch::Tensor& x) {
        const auto bytes = static_cast<std::int64_t>(x.storage().nbytes());
        if (!parameters.contains(x.storage().data()) && seen.insert(x.storage().data()).second) {
          sum.bytes += bytes;
          sum.largest = std::max(sum.largest, bytes);
        }
        return x;
      },
      [](const torch::Tensor& x) { return x; });
  workload->loss(workload->batch(0)).backward();
  return sum;
}

// Drawn until ten of them save more than eight times their largest tensor: where one tensor is most
// of what is saved, no order of copies can save much.
TEST(PolicyPeak, OffloadLowersItForDrawnModels) {
  test::Folder folder;
  Random random(7);
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  int judged = 0;
  for (int drawn = 0; judged < 10; ++drawn) {
    ASSERT_LT(drawn, 100);
    const std::int64_t heads = random.between(1, 4);
    const std::string text = " --layers " + number(random.between(1, 6)) + " --width " +
                             number(heads * 2 * random.between(4, 16)) + " --heads " +
                             number(heads) + " --context " + number(random.between(16, 128)) +
                             " --batch " + number(random.between(1, 8)) + " --data " +
                             folder.text();
    const std::string pictures = "resnet --layers " + number(random.between(1, 2)) + " --width " +
                                 number(random.between(4, 16)) + " --images 100 --batch " +
                                 number(random.between(2, 32));
    const std::string model = drawn % 3 == 0   ? "gpt" + text
                              : drawn % 3 == 1 ? "llama --kv-heads 1" + text
                                               : pictures;
    const Saved sum = saved(test::parse(model));
    if (sum.bytes <= 8 * sum.largest) continue;
    ++judged;
    const double ratio = lowered_to(model);
    EXPECT_LE(ratio, 0.7) << model;
    std::cout << ratio << " " << model.substr(0, model.find(" --data")) << "\n";
  }
}

}  // namespace
}  // namespace ferry::real::train
