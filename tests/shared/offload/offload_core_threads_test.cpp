// What may be called from two threads: the one waits while the other is in the middle of a call.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/offload/offload_core.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::SaveRef;

// A device whose mutex tells that a thread waits for it, and that runs a thread's `in_a_call` the
// next time that the core asks for a size: under the lock, where it packs.
class Crossed final : public sim::SimDevice {
 public:
  class Mutex {
   public:
    void lock() {
      if (mutex_.try_lock()) return;
      waited_for = true;
      mutex_.lock();
    }
    void unlock() { mutex_.unlock(); }
    static inline std::atomic<bool> waited_for = false;

   private:
    std::mutex mutex_;
  };

  explicit Crossed(sim::SimDevice device) : SimDevice(device) {}
  std::int64_t bytes(const Storage& storage) {
    if (const auto call = std::exchange(in_a_call, nullptr)) call();
    return SimDevice::bytes(storage);
  }
  static inline thread_local std::function<void()> in_a_call;
};

struct Asked {
  std::atomic<int> tasks = 0;
  std::function<void()> at_after_task;
};

class Asking final : public test::ScriptAutograd {
 public:
  Asking(test::Script& script, std::shared_ptr<Asked> asked)
      : test::ScriptAutograd(script), asked_(std::move(asked)) {}
  void after_task(std::function<void()> callback) {
    ++asked_->tasks;
    if (asked_->at_after_task) asked_->at_after_task();
    test::ScriptAutograd::after_task(std::move(callback));
  }

 private:
  std::shared_ptr<Asked> asked_;
};

using Core = OffloadCore<Crossed, Asking>;

// A thread in the middle of a pack, until another one waits for the core or `waited` is asked.
class Packing {
 public:
  Packing(
      Core& core, const Tensor& small, std::function<void()> once_waited_for = [] {})
      : thread_([this, &core, small, once_waited_for = std::move(once_waited_for)] {
          Crossed::in_a_call = [&] {
            Crossed::Mutex::waited_for = false;
            inside_ = true;
            while (!Crossed::Mutex::waited_for && !over_) std::this_thread::yield();
            waited_ = Crossed::Mutex::waited_for;
            if (waited_) once_waited_for();
          };
          core.pack(small);
        }) {
    while (!inside_) std::this_thread::yield();
  }
  // Whether anybody has.
  bool waited() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return waited_;
  }
  ~Packing() { over_ = true; }

 private:
  std::atomic<bool> inside_ = false;
  std::atomic<bool> over_ = false;
  bool waited_ = false;
  std::jthread thread_;  // the last: it sees the others
};

class OffloadCoreThreads : public ::testing::Test {
 protected:
  // The first pack of the run is kept, though it is large; the second one moves.
  static CoreOptions options() {
    CoreOptions options = test::eager_options();
    options.offload = {false, true};
    return options;
  }
  // A save that is on the host alone.
  SaveRef moved() {
    kept = core->pack(world.make(64 * test::kKiB));
    SaveRef save = core->pack(world.make(64 * test::kKiB));
    core->pack(small);
    return save;
  }

  test::World world;
  test::Script script;
  std::shared_ptr<Asked> asked = std::make_shared<Asked>();
  std::shared_ptr<Core> core =
      std::make_shared<Core>(Crossed(world.device()), Asking(script, asked), options(), Rules());
  const Tensor small = world.make(test::Rig::kTiny);
  SaveRef kept;
};

TEST_F(OffloadCoreThreads, EachCallWaitsForOneThatIsNotOver) {
  SaveRef save = moved();
  const std::vector<std::pair<std::string, std::function<void()>>> others = {
      {"a pack", [&] { core->pack(small); }},
      {"an unpack", [&] { save->unpack(); }},
      {"a save that dies", [&] { save.reset(); }},
      {"a kept save that dies", [&] { kept.reset(); }},
      {"a parameter", [&] { core->exempt(small); }},
      {"a run", [&] { core->begin_run(); }},
      {"a run that goes on", [&] { core->continue_at(3, 4); }},
      {"statistics", [&] { core->statistics(); }},
      {"whether it is empty", [&] { core->empty(); }},
  };
  for (const auto& [name, call] : others) {
    Packing packing(*core, small);
    call();
    EXPECT_TRUE(packing.waited()) << name;
  }
}

TEST_F(OffloadCoreThreads, AnUnpackWaitsBeforeItAsksForItsTasksEnd) {
  const SaveRef save = moved();
  script.backward([&] {
    int before = -1;
    Packing packing(*core, small, [&] { before = asked->tasks; });
    save->unpack();
    EXPECT_TRUE(packing.waited());
    EXPECT_EQ(before, 0);
    EXPECT_EQ(asked->tasks, 1);
  });
}

TEST_F(OffloadCoreThreads, AnUnpackWhoseTaskIsRefusedWaitsToTakeItBack) {
  const SaveRef save = moved();
  std::optional<Packing> packing;
  asked->at_after_task = [&] {
    packing.emplace(*core, small);
    throw std::runtime_error("refused");
  };
  EXPECT_THROW(script.backward([&] { save->unpack(); }), std::runtime_error);
  EXPECT_TRUE(packing->waited());
}

}  // namespace
}  // namespace ferry
