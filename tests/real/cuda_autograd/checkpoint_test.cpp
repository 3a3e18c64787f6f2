// ferry::checkpoint on the virtual GPU: random numbers are the CUDA generator's, and recomputes run
// on the device's streams.
#include "ferry/checkpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "ferry/selective.h"
#include "tests/real/cuda_autograd/trained.h"

namespace ferry::real {
namespace {

using CallBlock = NetImpl::CallBlock;

CallBlock with(const CheckpointOptions& options) {
  return [options](Block& block, torch::Tensor x) { return checkpoint(options, block, x); };
}

torch::Tensor nested(Block& block, torch::Tensor x) {
  const auto around = [](torch::Tensor y, Block inner) { return checkpoint(inner, y) * 1; };
  return checkpoint(around, std::move(x), block);
}

struct Way {
  std::string name;
  CallBlock call;
  bool offloads = false;
};

std::vector<Way> ways() {
  using enum SavedChoice;
  using enum CheckpointPolicy;
  const auto selected = [](const SelectiveCall& call) {
    return call.op == "aten::addmm" ? (call.index % 2 == 0 ? kMustSave : kMustOffload)
                                    : kPreferRecompute;
  };
  const CheckpointOptions some =
      CheckpointOptions().choices({kRecompute, kKeep, kOffload, kRecompute, kOffload});
  return {{"Plain", with({})},
          {"WholeRecomputes", with(CheckpointOptions().early_stop(false))},
          {"Nested", nested},
          {"Reentrant", with(CheckpointOptions().reentrant(true))},
          {"Debug", with(CheckpointOptions().debug(true))},
          {"SelectiveList", with(CheckpointOptions().context_fn(selective({"aten::addmm"})))},
          {"SelectiveOffload", with(CheckpointOptions().context_fn(selective(selected))), true},
          {"Choices", with(some), true},
          {"InAnOffloadGuard", with({}), true},
          {"NestedInAnOffloadGuard", nested, true}};
}

class CheckpointOnTheVirtualGpu : public testing::TestWithParam<Way> {};

TEST_P(CheckpointOnTheVirtualGpu, GivesThePlainStepsBits) {
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    Net net = make_net(kGpu);
    Offload offload(OffloadOptions().device(kGpu).min_bytes(1).window_tensors(1));
    offload.exempt(*net);
    for (int step = 0; step < 2; ++step) {
      std::optional<OffloadGuard> guard;
      if (GetParam().offloads) guard.emplace(offload);
      EXPECT_EQ(difference(train_step(net, kGpu, GetParam().call), plain_bits()), "") << schedule;
    }
    EXPECT_EQ(hazard(world), "") << schedule;
    EXPECT_EQ(offload.statistics().offloaded_count > 5, GetParam().offloads);
    EXPECT_TRUE(offload.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CheckpointOnTheVirtualGpu, testing::ValuesIn(ways()),
                         [](const auto& chosen) { return chosen.param.name; });

// The bits above depend on it.
TEST(CheckpointOnTheVirtualGpuRandom, WithoutReplayTheDropoutsDiffer) {
  VirtualWorld world;
  Net net = make_net(kGpu);
  const auto bits = train_step(net, kGpu, with(CheckpointOptions().preserve_rng_state(false)));
  EXPECT_NE(difference(bits, plain_bits()), "");
}

}  // namespace
}  // namespace ferry::real
