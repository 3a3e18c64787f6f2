#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

class Ops final : public Listener {
 public:
  void on(const StreamOp& op) override { kinds.push_back(op.kind); }
  void forget(Range) override {}
  void destroy_event(EventId) override {}
  std::vector<StreamOpKind> kinds;
};

// A byte takes a nanosecond, as does a FLOP. Adds up what is issued.
class SimpleClock final : public Clock {
 public:
  void issue(StreamId, int, const Cost& cost, const char*) override { issued += duration(cost); }
  void begin_graph(StreamId, int) override {}
  void end_graph() override {}
  void allocated(int, std::int64_t) override {}
  Mark record(StreamId, int) override { return Mark{1}; }
  void release(Mark) override {}
  void wait(StreamId, int, Mark) override {}
  Answer host_asks(Mark) override { return Answer::kDone; }
  void host_waits(Mark) override {}
  void host_waits(StreamId, int) override {}
  void host_computes(const KernelCost&) override {}
  std::int64_t duration(const Cost& cost) const override {
    if (const auto* const kernel = std::get_if<KernelCost>(&cost)) {
      return kernel->flops + kernel->bytes;
    }
    const auto* const copy = std::get_if<CopyCost>(&cost);
    return copy != nullptr ? copy->bytes : 0;
  }
  std::int64_t run_to_end(Mark) override { return 0; }

  std::int64_t issued = 0;
};

class RehearsalTest : public testing::Test {
 protected:
  RehearsalTest() {
    reset();
    set_clock(&clock_, true);
    cudaMalloc(&memory_, 64);
    set_listener(&ops_);
  }
  ~RehearsalTest() override {
    set_listener(nullptr);
    cudaFree(memory_);
    set_clock(nullptr, false);
  }
  void launch_kernel(std::int64_t flops) {
    launch(nullptr, "work", {}, {}, [this] { ++ran_; }, {.flops = flops});
  }

  SimpleClock clock_;
  Ops ops_;
  void* memory_ = nullptr;
  int ran_ = 0;
};

TEST_F(RehearsalTest, OnlyTheTimeCounts) {
  const std::int64_t before = begin_rehearsal();
  launch_kernel(300);
  cudaMemsetAsync(memory_, 1, 64, nullptr);
  const std::int64_t inner = begin_rehearsal();
  launch_kernel(7);
  EXPECT_EQ(end_rehearsal() - inner, 7);
  EXPECT_EQ(end_rehearsal() - before, 371);
  run_everything();
  EXPECT_EQ(ran_, 0);
  EXPECT_TRUE(ops_.kinds.empty());
  EXPECT_EQ(clock_.issued, 0);
}

TEST_F(RehearsalTest, CopiesToAndFromTheHostAreDone) {
  int number = 5;
  begin_rehearsal();
  cudaMemcpy(memory_, &number, sizeof number, cudaMemcpyHostToDevice);
  number = 0;
  cudaMemcpy(&number, memory_, sizeof number, cudaMemcpyDeviceToHost);
  end_rehearsal();
  EXPECT_EQ(number, 5);
}

TEST_F(RehearsalTest, AfterwardsWorkRunsAsBefore) {
  begin_rehearsal();
  end_rehearsal();
  launch_kernel(5);
  run_everything();
  EXPECT_EQ(ran_, 1);
  EXPECT_EQ(ops_.kinds.size(), 1U);
  EXPECT_EQ(clock_.issued, 5);
}

}  // namespace
}  // namespace ferry::vgpu
