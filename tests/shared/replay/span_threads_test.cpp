// What several threads may do with one span, and with one replayer: engine threads unpack and drop
// what a span saved, while it goes on or ends. ThreadSanitizer sees a call that forgets the lock.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {
namespace {

// A device without streams, whose tensors have no bytes: a version counter is a storage as well.
struct ThreadsDevice {
  using Tensor = sim::Tensor;
  using Version = sim::Version;
  using Storage = sim::Version;
  using WeakStorage = std::weak_ptr<sim::VersionCounter>;
  using Stream = int;
  using Event = int;
  using Metadata = int;
  using Layout = int;
  using Mutex = std::mutex;
  struct StreamScope {
    StreamScope(ThreadsDevice, Stream) {}
    ~StreamScope() {}  // NOLINT(modernize-use-equals-default): it is used
  };
  static Tensor make() {
    static std::atomic<std::uint64_t> made{0};
    return of(std::make_shared<sim::VersionCounter>(sim::VersionCounter{++made, 0}));
  }
  static Tensor of(const Version& version) { return sim::make_tensor(nullptr, {}, version); }

  Stream current_stream() { return 0; }
  Event record(Step, Stream) { return 0; }
  void wait(Step, Stream, Event) {}
  void record_use(Step, const Storage&, Stream) {}
  Storage storage(const Tensor& tensor) { return tensor->version; }
  WeakStorage weak(const Storage& storage) { return storage; }
  std::int64_t bytes(const Storage&) { return 1; }
  bool exists(const Storage& storage) { return storage != nullptr; }
  std::uint64_t identity(const Storage& storage) { return storage->identity; }
  bool on_device(const Tensor&) { return true; }
  bool plain(const Tensor&) { return true; }
  bool dense(const Tensor&) { return true; }
  Layout layout(const Tensor&) { return 0; }
  Extent extent(Layout) { return {0, 1}; }
  Version version(const Tensor& tensor) { return tensor->version; }
  std::uint64_t read(const Version& version) { return version->value; }
  Metadata metadata(const Tensor&) { return 0; }
  std::string describe(Metadata) { return "nothing"; }
  Tensor detach(const Tensor& tensor) { return of(tensor->version); }
  Tensor restore(const Storage&, Layout, std::int64_t, const Version& version) {
    return of(version);
  }
};

// Each thread has tasks and hooks of its own.
struct OfThread {
  static ThreadId next() {
    static std::atomic<std::uint64_t> threads{0};
    return ThreadId{threads++};
  }
  Script script;
  FrameThread thread{{.id = next()}};
  FrameAutograd autograd{script, thread};
};
OfThread& of_thread() {
  thread_local OfThread here;
  return here;
}

class ThreadsAutograd : public FrameAutograd {
 public:
  ThreadsAutograd() : FrameAutograd(of_thread().autograd) {}
  GraphTaskId graph_task() const { return of_thread().autograd.graph_task(); }
  ThreadId thread() const { return of_thread().thread.id; }
  void after_task(std::function<void()> callback) {
    of_thread().autograd.after_task(std::move(callback));
  }
  HookStack<Tensor> hooks() const { return of_thread().autograd.hooks(); }
  struct HooksScope : FrameAutograd::HooksScope {
    HooksScope(const ThreadsAutograd&, HookStack<Tensor> hooks)
        : FrameAutograd::HooksScope(of_thread().autograd, std::move(hooks)) {}
  };
};

using Tensor = sim::Tensor;
using Save = std::unique_ptr<Saved<Tensor>>;
using Saves = std::vector<Save>;
using Spans = Replayer<ThreadsDevice, ThreadsAutograd>;
using Span = std::shared_ptr<Spans::Span>;

constexpr int kTimes = 100;
constexpr std::size_t kSaves = 64;

void backward(const std::function<void()>& body) { of_thread().script.backward(body); }

Tensor call(const Span& span, std::vector<SeenCall<ThreadsDevice>::Argument> arguments = {}) {
  SeenCall<ThreadsDevice> seen;
  seen.arguments = std::move(arguments);
  seen.outputs = {ThreadsDevice::make()};
  seen.run = [](const std::vector<Tensor>&) { return std::vector{ThreadsDevice::make()}; };
  Tensor made = seen.outputs.front();
  span->ran(std::move(seen));
  return made;
}
// Saves what a call makes of a tensor from outside.
void save(const Span& span, Saves& saves) {
  saves.push_back(span->hooks()->pack(call(span, {{ThreadsDevice::make()}})));
}
Saves saves_of(Spans& spans, std::size_t count) {
  const Span span = spans.begin();
  Saves saves;
  while (saves.size() < count) save(span, saves);
  span->end();
  return saves;
}

// This thread is 0, and both begin at once.
void both(const std::function<void(int)>& body) {
  std::latch begin(2);
  const auto run = [&](int thread) {
    begin.arrive_and_wait();
    body(thread);
  };
  const std::jthread other(run, 1);
  run(0);
}

// Hooks around a span, that keep what they see.
struct Keeping final : Hooks<Tensor> {
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    return std::make_unique<KeptTensor<ThreadsDevice>>(ThreadsDevice(), tensor);
  }
};

TEST(SpanThreadsTest, TwoBackwardsUnpackTheSameTensors) {
  Spans spans({}, {});
  const Saves saves = saves_of(spans, kSaves);
  both([&](int) {
    for (int i = 0; i < kTimes; ++i) {
      backward([&] {
        for (std::size_t each = kSaves; each-- > 0;) EXPECT_NE(saves[each]->unpack(), nullptr);
      });
    }
  });
  EXPECT_EQ(spans.statistics().replays, 2 * kTimes);
  EXPECT_EQ(spans.statistics().calls_replayed, std::int64_t{2 * kTimes * kSaves});
}

TEST(SpanThreadsTest, OneUnpacksWhatTheOtherLeavesAndDrops) {
  Spans spans({}, {});
  std::vector<Saves> all;
  for (int i = 0; i < kTimes; ++i) all.push_back(saves_of(spans, kSaves));
  both([&](int thread) {
    for (Saves& saves : all) {
      if (thread == 0) {
        backward([&] {
          for (std::size_t i = 0; i < kSaves; i += 2) EXPECT_NE(saves[i]->unpack(), nullptr);
        });
      } else {
        for (std::size_t i = 1; i < kSaves; i += 2) saves[i].reset();
      }
    }
  });
  EXPECT_EQ(spans.statistics().replays, kTimes);
}

TEST(SpanThreadsTest, ASpanGoesOnAndEndsWhileAnotherThreadRunsItAgain) {
  Spans spans({}, {});
  for (int i = 0; i < kTimes; ++i) {
    const Span span = [&] {
      const HooksGuard<ThreadsAutograd> around({}, std::make_shared<Keeping>());
      return spans.begin();
    }();
    Saves first, rest;
    save(span, first);
    std::atomic<bool> ended = false;
    both([&](int thread) {
      if (thread == 0) {
        while (rest.size() < kSaves) save(span, rest);
        span->end();
        ended = true;
      } else {
        while (!ended) backward([&] { EXPECT_NE(first[0]->unpack(), nullptr); });
      }
    });
    backward([&] { EXPECT_NE(rest.back()->unpack(), nullptr); });
  }
  EXPECT_EQ(spans.statistics().held, std::int64_t{kTimes * (1 + kSaves)});
}

// A backward inside the span runs operators there and saves for a derivative more, until the span
// has ended or later.
TEST(SpanThreadsTest, WhatAnotherThreadRunsInASpanIsNotRecorded) {
  constexpr std::size_t kMany = 2000;
  Spans spans({}, {});
  const Span span = spans.begin();
  std::array<Saves, 2> saves;
  both([&](int thread) {
    while (saves[thread].size() < kMany) save(span, saves[thread]);
    if (thread == 0) span->end();
  });
  EXPECT_EQ(spans.statistics().calls, std::int64_t{kMany});
  EXPECT_EQ(spans.statistics().saved, std::int64_t{kMany});
  EXPECT_EQ(spans.statistics().passed_on, std::int64_t{kMany});
}

// What it saves is often dropped while the other one ends.
TEST(SpanThreadsTest, ASpanEndsWhileAnotherThreadSavesAndDrops) {
  Spans spans({}, {});
  for (int i = 0; i < kTimes; ++i) {
    const Span span = spans.begin();
    const Tensor made = call(span);
    both([&](int thread) {
      Saves saves;
      if (thread == 0) {
        while (saves.size() < kSaves) save(span, saves);
        span->end();
      } else {
        for (std::size_t each = 0; each < 2 * kSaves; ++each) span->hooks()->pack(made);
      }
    });
  }
  EXPECT_EQ(spans.statistics().held, std::int64_t{kTimes * kSaves});
  EXPECT_EQ(spans.statistics().saved + spans.statistics().passed_on,
            std::int64_t{3 * kTimes * kSaves});
  EXPECT_TRUE(spans.empty());
}

TEST(SpanThreadsTest, TwoThreadsCountInOneReplayersStatistics) {
  constexpr int kSpans = 2000;
  Spans spans({}, {});
  both([&](int) {
    for (int i = 0; i < kSpans; ++i) {
      const Saves saves = saves_of(spans, 2);
      EXPECT_GT(spans.statistics().alive, 0);
    }
  });
  EXPECT_EQ(spans.statistics().spans, 2 * kSpans);
  EXPECT_EQ(spans.statistics().saved, 4 * kSpans);
  EXPECT_EQ(spans.statistics().calls, 4 * kSpans);
  EXPECT_EQ(spans.statistics().held, 4 * kSpans);
  EXPECT_EQ(spans.statistics().alive, 0);
}

}  // namespace
}  // namespace ferry::test
