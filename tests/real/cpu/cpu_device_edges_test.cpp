// Every ordering step of the core's matters on the CPU device, too: dropped, it gives wrong bytes
// at some pace of the workers, and none does while it is taken. No luck: a pace is a schedule.
//
// The program computes on worker streams, one a round, and every block is of one size, so that the
// pools give out again whatever they may.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "tests/real/cpu/cpu_world.h"
#include "tests/real/script.h"

namespace ferry::real {
namespace {

struct Case {
  ReloadPool pool = ReloadPool::kConsumer;
  std::int64_t prefetch_bytes = 0;
  std::uint64_t late = 0;  // of ChosenPace
};

class Program {
 public:
  Program(const Case& chosen, std::optional<Mutation> mutation)
      : cpu_(with_pace(std::make_shared<ChosenPace>(chosen.late))),
        streams_{cpu_.new_stream("a"), cpu_.new_stream("b")},
        offloader_(Bent<CpuDevice>(cpu_, mutation), ScriptAutograd(script_), options(chosen)) {}

  // What was read and should not have been.
  std::int64_t wrong_reads() {
    for (const CpuStream& stream : streams_) run(stream);
    outlast_reloads(streams_.back());
    cpu_.finish();
    std::int64_t wrong = 0;
    for (const auto& [number, values] : *reads_) {
      if (values != contents(number)) ++wrong;
    }
    EXPECT_EQ(reads_->size(), 2U * (kTensors + kTensors / 3) + kKept);
    return wrong;
  }

 private:
  static constexpr std::int32_t kTensors = 6;
  static constexpr std::int32_t kKept = 8;
  static constexpr std::int64_t kElements = 256;
  using Save = std::unique_ptr<Saved<at::Tensor>>;
  struct Read {
    std::int32_t number;
    std::vector<std::int32_t> values;
  };

  static CoreOptions options(const Case& chosen) {
    CoreOptions options;
    options.window_tensors = 1;
    options.hold_bytes = 0;
    options.prefetch_bytes = chosen.prefetch_bytes;
    options.reload_pool = chosen.pool;
    return options;
  }
  static std::vector<std::int32_t> contents(std::int32_t number) {
    const at::Tensor tensor = at::empty({kElements}, at::kInt);
    const Window window(tensor);
    window.fill(number);
    return window.read();
  }

  void run(const CpuStream& compute) {
    const CpuStreamGuard guard(compute);
    std::vector<Save> saves;
    for (std::int32_t i = 0; i < kTensors + 2; ++i) saves.push_back(forward(++numbers_));
    const std::int32_t first = numbers_ - kTensors - 1;
    fresh();  // pushes the last source out of the window
    std::vector<at::Tensor> escaped;
    script_.backward([&] {
      for (std::int32_t i = kTensors + 1; i >= 2; --i) {
        script_.node([&] {
          at::Tensor x = saves[static_cast<std::size_t>(i)]->unpack();
          read(x, first + i);
          fresh();
          if (i % 3 == 0) escaped.push_back(std::move(x));
        });
        if (i == 3) read(std::exchange(escaped.front(), at::Tensor()), first + 6);
        saves[static_cast<std::size_t>(i)].reset();
      }
      read(std::exchange(escaped.back(), at::Tensor()), first + 3);
      fresh();
    });
    saves.clear();  // two were never asked for, and may have come for nothing
    fresh();
  }

  // Tensors that take the blocks of what came for nothing, and are read after all reloads.
  void outlast_reloads(const CpuStream& compute) {
    const CpuStreamGuard guard(compute);
    std::vector<at::Tensor> kept;
    for (std::int32_t i = 0; i < kKept; ++i) {
      kept.push_back(make_on(cpu_, compute, {kElements}));
      write(kept.back(), ++numbers_);
    }
    for (const CpuStream& stream : {compute, cpu_.lane(Lane::kHostToDevice)}) {
      cpu_.wait(Step::kUser, CpuStream(), cpu_.record(Step::kUser, stream));
    }
    for (std::int32_t i = 0; i < kKept; ++i) {
      read(kept[static_cast<std::size_t>(i)], numbers_ - kKept + 1 + i);
    }
    cpu_.finish();
  }

  Save forward(std::int32_t number) {
    const at::Tensor x = make_on(cpu_, cpu_.current_stream(), {kElements});
    write(x, number);
    return offloader_.hooks()->pack(x);
  }
  // A tensor of the program's own that lives for two kernels: it takes a block and overwrites it.
  void fresh() {
    std::vector<at::Tensor> several;
    for (int i = 0; i < 2; ++i) {
      several.push_back(make_on(cpu_, cpu_.current_stream(), {kElements}));
      write(several.back(), -1 - i);
    }
    offloader_.hooks()->pack(at::empty({1}, at::kInt));
  }
  void write(const at::Tensor& x, std::int32_t number) {
    cpu_.enqueue(cpu_.current_stream(), [window = Window(x), number] { window.fill(number); });
  }
  void read(const at::Tensor& x, std::int32_t number) {
    cpu_.enqueue(cpu_.current_stream(), [reads = reads_, lock = lock_, window = Window(x), number] {
      const std::lock_guard guard(*lock);
      reads->push_back({number, window.read()});
    });
  }

  std::shared_ptr<std::vector<Read>> reads_ = std::make_shared<std::vector<Read>>();
  std::shared_ptr<std::mutex> lock_ = std::make_shared<std::mutex>();
  CpuDevice cpu_;
  std::vector<CpuStream> streams_;
  Script script_;
  Offloader<Bent<CpuDevice>, ScriptAutograd> offloader_;
  std::int32_t numbers_ = 0;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
    for (const std::int64_t prefetch_bytes : {0, 4096}) {
      // The lanes and both streams that compute: bits 0, 1, 3 and 4.
      for (std::uint64_t i = 0; i < 16; ++i) {
        all.push_back({pool, prefetch_bytes, (i & 3U) | (i & 12U) << 1U});
      }
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const Case& chosen) {
  return out << "pool " << static_cast<int>(chosen.pool) << ", prefetch " << chosen.prefetch_bytes
             << ", late streams " << chosen.late;
}

TEST(CpuEdges, EveryPaceGivesTheRightBytes) {
  for (const Case& chosen : cases()) {
    EXPECT_EQ(Program(chosen, std::nullopt).wrong_reads(), 0) << chosen;
  }
}

class CpuEdge : public ::testing::TestWithParam<Step> {};

TEST_P(CpuEdge, DroppedItIsSeenAtSomePace) {
  std::int64_t caught = 0;
  for (const Case& chosen : cases()) {
    caught += Program(chosen, Mutation{GetParam(), Bend::kDrop}).wrong_reads() > 0 ? 1 : 0;
  }
  EXPECT_GT(caught, 0) << "of " << cases().size();
}

// kAbandon is not here: what it protects is read by copies that nobody reads.
INSTANTIATE_TEST_SUITE_P(Steps, CpuEdge,
                         ::testing::Values(Step::kProduced, Step::kOffloadAfterProducer,
                                           Step::kOffloaded, Step::kEvict, Step::kReady,
                                           Step::kReloadAfterReady, Step::kReloadAfterOffload,
                                           Step::kReloaded, Step::kConsume, Step::kEscaped,
                                           Step::kNodeDone, Step::kReleaseAfterNode, Step::kDiscard,
                                           Step::kHostReturn),
                         [](const auto& info) {
                           std::string name(kStepInfo[static_cast<std::size_t>(info.param)].name);
                           for (char& letter : name)
                             letter = letter == ' ' || letter == '-' ? '_' : letter;
                           return name;
                         });

}  // namespace
}  // namespace ferry::real
