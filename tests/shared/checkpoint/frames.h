// Checkpoints without a tape: a test says what a function saves, and who unpacks it when.
//
//   Saves saves = run([&](Saves& s) { save(s, world.make(kBytes)); });
//   script.backward([&] { saves[0]->unpack(); });
//
// Each `make` fills its tensor with contents of its own, so what a recompute made shows. At the end
// nothing may be left, and no tensor may have died under a lock.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/gpu/device.h"
#include "sim/gpu/mutex.h"
#include "tests/shared/checkpoint/recomputing_by_hand.h"
#include "tests/sim/support/script.h"
#include "tests/sim/support/world.h"

namespace ferry::test {

// Counts the calls that order streams, by step.
struct FrameDevice : sim::SimDevice {
  using Calls = std::map<Step, int>;
  FrameDevice(sim::SimDevice device, std::shared_ptr<Calls> counts)
      : sim::SimDevice(device), calls(std::move(counts)) {}
  Event record(Step step, Stream stream) {
    ++(*calls)[step];
    return sim::SimDevice::record(step, stream);
  }
  void wait(Step step, Stream stream, const Event& event) {
    ++(*calls)[step];
    sim::SimDevice::wait(step, stream, event);
  }
  void record_use(Step step, const Storage& storage, Stream stream) {
    ++(*calls)[step];
    sim::SimDevice::record_use(step, storage, stream);
  }
  std::shared_ptr<Calls> calls;
};

// What a test says of the thread that runs, beside the script's tasks.
struct FrameThread : HandThread {
  int task_ends = 0;  // callbacks asked for
};

class FrameAutograd : public RecomputingByHand<ScriptAutograd> {
 public:
  FrameAutograd(Script& script, FrameThread& of)
      : RecomputingByHand(ScriptAutograd(script), of), task_ends_(&of.task_ends) {}

  void after_task(std::function<void()> callback) {
    if (graph_task() == GraphTaskId::kNone) throw std::logic_error("there is no task");
    ++*task_ends_;
    ScriptAutograd::after_task(std::move(callback));
  }

 private:
  int* task_ends_;
};

class FrameTest : public ::testing::Test {
 protected:
  using Tensor = sim::Tensor;
  using Saves = std::vector<std::unique_ptr<Saved<Tensor>>>;
  using Body = std::function<void(Saves&)>;
  static constexpr std::int64_t kBytes = 4096;

  explicit FrameTest(const sim::MachineOptions& machine = {}) : world(machine) {}
  ~FrameTest() override {
    EXPECT_TRUE(checkpointer.empty());
    world.expect_clean();
    for (const check::Hazard& hazard : world.machine().hazards()) {
      ADD_FAILURE() << to_string(hazard);
    }
    EXPECT_STREQ(sim::locks().misuse, nullptr);
  }

  FrameAutograd autograd() { return {script, thread}; }
  // Runs a checkpoint, and gives what its forward saved. A recompute's saves go with it.
  Saves run(const Body& body, CoreCheckpointOptions options = {}) {
    Saves saves;
    checkpointer.run(
        {}, std::move(options),
        [body](const std::vector<Tensor>&) {
          Saves again;
          body(again);
        },
        [&](const std::vector<Tensor>&) { body(saves); });
    return saves;
  }
  // Of so many tensors.
  Saves run_saving(int count, CoreCheckpointOptions options = {}) {
    return run(
        [this, count](Saves& saves) {
          for (int i = 0; i < count; ++i) save(saves, world.make(kBytes));
        },
        std::move(options));
  }
  void save(Saves& saves, const Tensor& tensor) {
    saves.push_back(autograd().hooks().pack(tensor));
  }
  void op(const std::string& name) {
    if (thread.ops) thread.ops->push_back(name);
  }
  bool again() { return checkpoint_context(autograd().hooks()).recomputing; }

  // What unpacking it throws; empty: nothing.
  std::string error_of(Saves& saves, std::size_t ordinal) {
    try {
      saves[ordinal]->unpack();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  std::int64_t live() { return world.machine().live_storages(); }
  std::int64_t recomputes() const { return checkpointer.statistics().recomputes; }
  static CoreCheckpointOptions choosing(std::vector<SavedChoice> choices) {
    CoreCheckpointOptions options;
    options.choices = std::move(choices);
    return options;
  }

  World world;
  Script script;
  FrameThread thread;
  std::shared_ptr<FrameDevice::Calls> calls = std::make_shared<FrameDevice::Calls>();
  Checkpointer<FrameDevice, FrameAutograd> checkpointer{FrameDevice(world.device(), calls),
                                                        autograd()};
};

}  // namespace ferry::test
