// Spans without a tape: a test says which operators ran, what they took and made, which tensors
// were saved, and who unpacks them when.
//
//   const Tensor y = call(span, {{x}});
//   const Save saved = save(span, y);
//   backward([&] { saved->unpack(); });
//
// At the end nothing may be left, and no tensor may have died under a lock.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "tests/shared/checkpoint/frames.h"

namespace ferry::test {

// What a test tells the device, and asks it.
struct SpanNotes {
  // Tensors that are more than windows.
  std::set<std::weak_ptr<const sim::TensorImpl>, std::owner_less<>> odd;
  std::shared_ptr<int> weak = std::make_shared<int>();
  std::int64_t weak_references() const { return weak.use_count() - 1; }
};

class SpanDevice : public FrameDevice {
 public:
  struct WeakStorage {
    std::weak_ptr<sim::StorageImpl> storage;
    std::shared_ptr<int> counted;
  };

  SpanDevice(FrameDevice device, std::shared_ptr<SpanNotes> notes)
      : FrameDevice(std::move(device)), notes_(std::move(notes)) {}
  bool plain(const Tensor& tensor) const { return !notes_->odd.contains(tensor); }
  WeakStorage weak(const Storage& storage) { return {storage, notes_->weak}; }
  std::uint64_t identity(const Storage& storage) {
    if (!storage) throw std::logic_error("what is no storage has no identity");
    return FrameDevice::identity(storage);
  }

 private:
  std::shared_ptr<SpanNotes> notes_;
};

class ReplayTest : public ::testing::Test {
 protected:
  using Tensor = sim::Tensor;
  using Tensors = std::vector<Tensor>;
  using Seen = SeenCall<SpanDevice>;
  using Argument = Seen::Argument;
  using Arguments = std::vector<Argument>;
  static constexpr std::int64_t kBytes = 4096;

  explicit ReplayTest(const sim::MachineOptions& machine = {}) : world(machine) {}

  void expect_clean() {
    world.expect_clean();
    for (const check::Hazard& hazard : world.machine().hazards()) {
      ADD_FAILURE() << to_string(hazard);
    }
    EXPECT_STREQ(sim::locks().misuse, nullptr);
  }

  SpanDevice device() { return {FrameDevice(world.device(), calls), notes}; }
  std::int64_t live() { return world.machine().live_storages(); }
  Tensor make() { return world.make(kBytes); }
  // What has no storage, as tensors of some layouts do.
  Tensor without_storage() {
    Tensor tensor = world.device().detach(make());
    tensor->storage = nullptr;
    return tensor;
  }
  // Another tensor on the same bytes.
  Tensor view(const Tensor& tensor) { return world.device().detach(tensor); }
  Tensor odd(Tensor tensor) {
    notes->odd.insert(tensor);
    return tensor;
  }
  // Run again, it makes as many tensors.
  Seen seen(Arguments arguments, Tensors outputs) {
    Seen seen;
    seen.arguments = std::move(arguments);
    seen.outputs = std::move(outputs);
    seen.run = [this, count = seen.outputs.size()](const Tensors&) {
      Tensors made;
      while (made.size() < count) made.push_back(make());
      return made;
    };
    return seen;
  }

  World world;
  std::shared_ptr<FrameDevice::Calls> calls = std::make_shared<FrameDevice::Calls>();
  std::shared_ptr<SpanNotes> notes = std::make_shared<SpanNotes>();
};

// Hooks around a span: they note what they see, and keep it.
class Around final : public Hooks<sim::Tensor> {
 public:
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    seen.push_back(tensor->storage->identity);
    return std::make_unique<Kept>(tensor);
  }
  std::vector<std::uint64_t> seen;  // storages

 private:
  struct Kept final : Saved<sim::Tensor> {
    explicit Kept(sim::Tensor kept) : tensor(std::move(kept)) {}
    sim::Tensor unpack() override { return tensor; }
    sim::Tensor tensor;
  };
};

class SpanTest : public ReplayTest {
 protected:
  using Spans = Replayer<SpanDevice, FrameAutograd>;
  using Span = std::shared_ptr<Spans::Span>;
  using Save = std::unique_ptr<Saved<Tensor>>;

  explicit SpanTest(const sim::MachineOptions& machine = {}) : ReplayTest(machine) {}
  ~SpanTest() override {
    EXPECT_TRUE(replayer.empty());
    expect_clean();
  }

  FrameAutograd autograd() { return {script, thread}; }
  // Runs an operator that makes a tensor.
  Tensor call(const Span& span, Arguments arguments = {}) {
    Seen call = seen(std::move(arguments), {make()});
    Tensor made = call.outputs.front();
    span->ran(std::move(call));
    return made;
  }
  // (A script numbers the tasks of each type of body by themselves; so all are of one type.)
  void backward(const std::function<void()>& body) { script.backward(body); }
  static Save save(const Span& span, const Tensor& tensor) { return span->hooks()->pack(tensor); }
  // What it throws; empty: nothing.
  template <class Body>
  static std::string error_of(Body body) {
    try {
      body();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  ReplayStatistics counts() const { return replayer.statistics(); }

  Script script;
  FrameThread thread;
  Spans replayer{device(), autograd()};
};

inline const std::string kWritten =
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: it is at version 1; expected version 0 instead";

}  // namespace ferry::test
