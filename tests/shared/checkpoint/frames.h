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
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/gpu/device.h"
#include "sim/gpu/mutex.h"
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
struct FrameThread {
  ThreadId id{};
  bool captured = true;                     // false: the ambient state was not, after all
  std::vector<std::string>* ops = nullptr;  // the innermost log
  int task_ends = 0;                        // callbacks asked for
};

class FrameAutograd : public ScriptAutograd {
 public:
  using Value = Tensor;
  FrameAutograd(Script& script, FrameThread& of) : ScriptAutograd(script), thread_(&of) {}

  void after_task(std::function<void()> callback) {
    if (graph_task() == GraphTaskId::kNone) throw std::logic_error("there is no task");
    ++thread_->task_ends;
    ScriptAutograd::after_task(std::move(callback));
  }

  struct SavedValue {
    Value value;
    std::unique_ptr<Saved<Tensor>> packed;
    Value unpack() { return packed ? packed->unpack() : value; }
  };
  SavedValue save(const Value& value) { return {value, hooks().pack(value)}; }
  ThreadId thread() const { return thread_->id; }
  bool grad_mode() const { return true; }
  struct GradModeScope {
    GradModeScope(FrameAutograd, bool) {}
  };
  struct Ambient {};
  Ambient ambient(std::span<const Value>, bool) const { return {}; }
  void check(const Ambient&) const {
    if (!thread_->captured) throw std::runtime_error("the device came late");
  }
  struct AmbientScope {
    AmbientScope(FrameAutograd, const Ambient&) {}
  };

  class OpLog {
   public:
    explicit OpLog(FrameAutograd autograd)
        : slot_(autograd.thread_->ops), outer_(std::exchange(slot_, &names_)) {}
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog() { slot_ = outer_; }
    std::vector<std::string> names() const { return names_; }

   private:
    std::vector<std::string>*& slot_;
    std::vector<std::string>* outer_;
    std::vector<std::string> names_;
  };

  // The reentrant variant's alone.
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

 private:
  FrameThread* thread_;
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
