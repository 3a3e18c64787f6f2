// What two threads may do with one cache at a time: forward records on one while backwards take on
// others. ThreadSanitizer sees a call that forgets the lock; without it some are seen, by what is
// then lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "shared/checkpoint/selective.h"
#include "sim/gpu/tensor.h"

namespace ferry {
namespace {

using enum CheckpointPolicy;

// Tensors without a storage: a version is all that the cache looks at.
struct Tensors {
  using Tensor = sim::Tensor;
  using Version = sim::Version;
  using Mutex = std::mutex;
  static Tensor make() {
    return sim::make_tensor(nullptr, {}, std::make_shared<sim::VersionCounter>());
  }
  static Version version(const Tensor& tensor) { return tensor->version; }
  static std::uint64_t read(const Version& version) { return version->value; }
  static Tensor alias(const Tensor& tensor) { return std::make_shared<sim::TensorImpl>(*tensor); }
};
using Cache = SelectiveCache<Tensors, std::int64_t>;
using Recompute = SelectiveRecompute<Tensors, std::int64_t>;

constexpr int kCalls = 10000;
const std::string kOp = "aten::a_matrix_product_that_has_a_name_of_some_length";

// Two threads that begin at once.
void both(const std::function<void(int)>& call) {
  std::latch begin(2);
  const auto run = [&](int thread) {
    begin.arrive_and_wait();
    call(thread);
  };
  const std::jthread one(run, 0);
  const std::jthread two(run, 1);
}

// Holds what it is given, but cannot give it back.
struct Gone final : Hooks<sim::Tensor> {
  struct Held final : Saved<sim::Tensor> {
    sim::Tensor unpack() override { throw std::runtime_error("the host is gone"); }
  };
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor&) override {
    return std::make_unique<Held>();
  }
};

TEST(SelectiveThreadsTest, BothRecordAndAskWhatRan) {
  Cache cache({}, {}, false);
  both([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      cache.ran(kOp, kPreferRecompute, {});
      cache.ran(std::to_string(2 * i + thread), kPreferRecompute, {});
      const std::size_t ran = cache.calls(kOp);
      ASSERT_GT(ran, static_cast<std::size_t>(i));
      ASSERT_LE(ran, 2u * kCalls);
    }
  });
  EXPECT_EQ(cache.calls(kOp), 2u * kCalls);
  for (int i = 0; i < 2 * kCalls; ++i) ASSERT_EQ(cache.calls(std::to_string(i)), 1u);
}

TEST(SelectiveThreadsTest, ARecomputeOnBothTakesEachCallOnce) {
  const auto cache = std::make_shared<Cache>(Tensors(), HookStack<sim::Tensor>(), false);
  for (int i = 0; i < 2 * kCalls; ++i) cache->ran(kOp, kMustSave, {std::int64_t{i}});
  Recompute recompute(cache);
  std::atomic<std::int64_t> sum = 0;
  std::atomic<int> refused = 0;
  both([&](int) {
    for (int i = 0; i < kCalls; ++i) {
      try {
        sum += std::get<std::int64_t>(recompute.next(kOp, [] { return kMustSave; })->at(0));
      } catch (const Error&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(sum, std::int64_t{kCalls} * (2 * kCalls - 1));
}

// A version takes a while to read, so the two meet within their takes.
TEST(SelectiveThreadsTest, OfTwoRecomputesOneGetsACallsOutputs) {
  struct Slow : Tensors {
    static std::uint64_t read(const Version& version) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
      return version->value;
    }
  };
  constexpr int kTakes = 200;
  const auto cache =
      std::make_shared<SelectiveCache<Slow>>(Slow(), HookStack<sim::Tensor>(), false);
  for (int i = 0; i < kTakes; ++i) cache->ran(kOp, kMustSave, {Tensors::make()});
  std::atomic<int> taken = 0;
  std::atomic<int> refused = 0;
  both([&](int) {
    SelectiveRecompute<Slow> recompute(cache);
    for (int i = 0; i < kTakes; ++i) {
      try {
        taken += static_cast<int>(recompute.next(kOp, [] { return kMustSave; })->size());
      } catch (const Error&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(taken, kTakes);
  EXPECT_EQ(refused, kTakes);
}

// What did not come back can be asked for again, whatever forward records in between.
TEST(SelectiveThreadsTest, OneFailsToTakeWhileTheOtherRecords) {
  HookStack<sim::Tensor> stack;
  stack.top = std::make_shared<const HookFrame<sim::Tensor>>(
      HookFrame<sim::Tensor>{std::make_shared<Gone>(), nullptr});
  const auto cache = std::make_shared<Cache>(Tensors(), stack, false);
  cache->ran(kOp, kMustOffload, {Tensors::make()});
  std::atomic<int> gone = 0;
  both([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      if (thread == 0) {
        cache->ran(kOp, kPreferRecompute, {});
        continue;
      }
      try {
        cache->take(kOp, 0, [] { return kMustSave; });
      } catch (const std::runtime_error& error) {
        gone += error.what() == std::string("the host is gone") ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(gone, kCalls);
}

}  // namespace
}  // namespace ferry
