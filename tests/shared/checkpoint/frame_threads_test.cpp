// What several threads may do with one frame, and with one checkpointer. Engine threads unpack and
// drop what a frame saved, and save in it where the function itself goes backward.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "shared/checkpoint/frame.h"

namespace ferry::test {
namespace {

// A device without streams, on which threads may do as they like.
struct Plain {
  std::atomic<std::uint64_t> version = 0;
};

}  // namespace
}  // namespace ferry::test

template <>
struct ferry::Exceptions<std::shared_ptr<ferry::test::Plain>> : ferry::Exceptions<void> {};

namespace ferry::test {
namespace {

struct PlainDevice {
  using Tensor = std::shared_ptr<Plain>;
  using Storage = Tensor;
  using Version = Tensor;
  using Stream = int;
  using Event = int;
  using Metadata = int;
  using Mutex = std::mutex;
  struct StreamScope {
    StreamScope(PlainDevice, Stream) {}
  };
  Stream current_stream() { return 0; }
  Event record(Step, Stream) { return 0; }
  void wait(Step, Stream, Event) {}
  void record_use(Step, const Storage&, Stream) {}
  Storage storage(const Tensor& tensor) { return tensor; }
  bool on_device(const Tensor&) { return true; }
  Version version(const Tensor& tensor) { return tensor; }
  std::uint64_t read(const Version& version) { return version->version; }
  Metadata metadata(const Tensor&) { return 0; }
  std::string describe(Metadata) { return "plain"; }
  Tensor detach(const Tensor& tensor) { return tensor; }
};

// Each thread has a task and hooks of its own.
struct OfThread {
  GraphTaskId task = GraphTaskId::kNone;
  std::vector<std::function<void()>> task_ends;
  HookStack<PlainDevice::Tensor> hooks;
};
thread_local OfThread of_thread;

struct PlainAutograd {
  using Tensor = PlainDevice::Tensor;
  using Value = Tensor;
  GraphTaskId graph_task() const { return of_thread.task; }
  NodeId node() const { return NodeId::kNone; }
  void after_node(const std::function<void()>&) {}
  void after_task(std::function<void()> callback) {
    of_thread.task_ends.push_back(std::move(callback));
  }
  HookStack<Tensor> hooks() const { return of_thread.hooks; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(PlainAutograd, HookStack<Tensor> hooks)
        : ReplacedHooks(of_thread.hooks, std::move(hooks)) {}
  };
  struct SavedValue {
    Value value;
    Value unpack() { return value; }
  };
  SavedValue save(const Value& value) { return {value}; }
  ThreadId thread() const { return ThreadId{}; }  // tasks tell the threads of these tests apart
  bool grad_mode() const { return true; }
  struct GradModeScope {
    GradModeScope(PlainAutograd, bool) {}
  };
  struct Ambient {};
  Ambient ambient(std::span<const Value>, bool) const { return {}; }
  void check(const Ambient&) const {}
  struct AmbientScope {
    AmbientScope(PlainAutograd, const Ambient&) {}
  };
  struct OpLog {
    explicit OpLog(PlainAutograd) {}
    std::vector<std::string> names() const { return {}; }
  };
  bool requires_grad(const Value&) const { return true; }
  Value detach(const Value& value) const { return value; }
  void backward(std::span<const Value>, std::span<const Value>) const {}
  Value gradient(const Value&) const { return {}; }
  bool checkpoint_valid() const { return true; }
  std::vector<Value> function(
      std::span<const Value>, std::vector<Value> outputs,
      const std::function<std::vector<Value>(std::vector<Value>, std::vector<Value>)>&,
      AbsentGradient) const {
    return outputs;
  }
};

using Saves = std::vector<std::unique_ptr<Saved<PlainDevice::Tensor>>>;
using Segments = Checkpointer<PlainDevice, PlainAutograd>;

// Runs the body as a backward of the calling thread's.
template <class Body>
void backward(Body body) {
  static std::atomic<std::int64_t> ids{0};
  of_thread.task = GraphTaskId{ids++};
  body();
  for (const auto& callback : std::exchange(of_thread.task_ends, {})) callback();
  of_thread.task = GraphTaskId::kNone;
}

// Runs both at once, as often as that.
template <class One, class Two>
void meet(int times, One one, Two two) {
  std::barrier begin(2);
  const std::jthread other([&] {
    for (int i = 0; i < times; ++i) {
      begin.arrive_and_wait();
      two(i);
      begin.arrive_and_wait();
    }
  });
  for (int i = 0; i < times; ++i) {
    begin.arrive_and_wait();
    one(i);
    begin.arrive_and_wait();
  }
}

void save(Saves& saves) { saves.push_back(of_thread.hooks.pack(std::make_shared<Plain>())); }

Saves run(Segments& segments, int count) {
  Saves saves;
  const auto body = [count](Saves& into) {
    for (int i = 0; i < count; ++i) save(into);
  };
  segments.run(
      {}, {},
      [body](const std::vector<PlainDevice::Tensor>&) {
        Saves again;
        body(again);
      },
      [&](const std::vector<PlainDevice::Tensor>&) { body(saves); });
  return saves;
}

constexpr int kTimes = 100;
constexpr std::size_t kSaves = 64;

TEST(FrameThreadsTest, TwoBackwardsUnpackTheSameTensors) {
  Segments segments({}, {});
  const Saves saves = run(segments, kSaves);
  const auto unpack_all = [&](int) {
    backward([&] {
      for (std::size_t i = kSaves; i-- > 0;) EXPECT_NE(saves[i]->unpack(), nullptr);
    });
  };
  meet(kTimes, unpack_all, unpack_all);
  EXPECT_EQ(segments.statistics().recomputes, 2 * kTimes);
  EXPECT_EQ(segments.statistics().stopped_early, 2 * kTimes);
}

TEST(FrameThreadsTest, OneUnpacksWhatTheOtherLeavesAndDrops) {
  Segments segments({}, {});
  std::vector<Saves> frames;
  for (int i = 0; i < kTimes; ++i) frames.push_back(run(segments, kSaves));
  meet(
      kTimes,
      [&](int frame) {
        backward([&] {
          for (std::size_t i = 0; i < kSaves; i += 2)
            EXPECT_NE(frames[frame][i]->unpack(), nullptr);
        });
      },
      [&](int frame) {
        for (std::size_t i = 1; i < kSaves; i += 2) frames[frame][i].reset();
      });
  EXPECT_EQ(segments.statistics().recomputes, kTimes);
}

// A backward within the function saves for a derivative more, on a thread of the engine's, and
// another one unpacks what is there already.
TEST(FrameThreadsTest, OneFunctionSavesOnTwoThreads) {
  Segments segments({}, {});
  std::array<Saves, 2> saves;
  segments.run(
      {}, {}, [](const std::vector<PlainDevice::Tensor>&) {},
      [&](const std::vector<PlainDevice::Tensor>&) {
        const auto here = of_thread.hooks;
        meet(
            kTimes * 10, [&](int) { save(saves[0]); },
            [&](int) {
              const PlainAutograd::HooksScope scope({}, here);
              save(saves[1]);
            });
      });
  EXPECT_EQ(segments.statistics().saved, 2 * 10 * kTimes);
}

TEST(FrameThreadsTest, ForwardEndsWhileAnotherThreadRunsItAgain) {
  Segments segments({}, {});
  for (int i = 0; i < kTimes; ++i) {
    Saves saves;
    std::jthread other;
    segments.run(
        {}, {},
        [](const std::vector<PlainDevice::Tensor>&) {
          Saves again;
          for (std::size_t k = 0; k < kSaves; ++k) save(again);
        },
        [&](const std::vector<PlainDevice::Tensor>&) {
          save(saves);
          other = std::jthread(
              [first = saves[0].get()] { backward([&] { EXPECT_NE(first->unpack(), nullptr); }); });
          Saves rest;
          for (std::size_t k = 1; k < kSaves; ++k) save(rest);
          for (auto& each : rest) saves.push_back(std::move(each));
        });
    other.join();
  }
  EXPECT_EQ(segments.statistics().recomputes, kTimes);
}

TEST(FrameThreadsTest, TwoThreadsCountInOneCheckpointersStatistics) {
  constexpr int kSegments = 2000;
  Segments segments({}, {});
  const auto some = [&](int) {
    for (int i = 0; i < kSegments; ++i) {
      run(segments, 2);
      EXPECT_GE(segments.statistics().alive, 0);
    }
  };
  meet(1, some, some);
  EXPECT_EQ(segments.statistics().segments, 2 * kSegments);
  EXPECT_EQ(segments.statistics().saved, 4 * kSegments);
  EXPECT_EQ(segments.statistics().alive, 0);
}

}  // namespace
}  // namespace ferry::test
