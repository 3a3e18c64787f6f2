// A simulated machine to test the core on: tensors made by hand, and every checker watching.
//
// `make` and `write` are kernels of the current stream that fill a tensor with contents of their
// own; `use` reads it there. `contents` is a hash of the bytes, wherever they lie.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/values.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"

namespace ferry::test {

class Checkers final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    lifetime_(op);
    happens_before_(op);
    values_(op);
    if (op.kind == StreamOpKind::kCopy) ++copies_[static_cast<std::size_t>(op.step)];
  }
  std::uint64_t read(Range range) const { return values_.read(range); }
  check::Values& values() { return values_; }
  std::int64_t copies(Step step) const { return copies_[static_cast<std::size_t>(step)]; }
  std::vector<std::string> hazards() const {
    std::vector<std::string> texts;
    for (const check::Hazard& hazard : lifetime_.hazards()) texts.push_back(to_string(hazard));
    for (const check::Hazard& hazard : happens_before_.hazards()) {
      texts.push_back(to_string(hazard));
    }
    return texts;
  }

 private:
  check::Lifetime lifetime_;
  check::HappensBefore happens_before_;
  check::Values values_;
  std::array<std::int64_t, kSteps> copies_{};
};

class World {
 public:
  using Tensor = sim::Tensor;
  using Shape = std::vector<std::int64_t>;

  // On one of the machine's devices.
  explicit World(const sim::MachineOptions& options = {}, std::uint32_t device = 0)
      : machine_(options), device_(device) {
    machine_.add_consumer(&checkers_);
    machine_.set_current_stream(stream(0));
  }

  sim::Machine& machine() { return machine_; }
  sim::SimDevice device() { return sim::SimDevice(machine_, device_); }
  StreamId stream(std::uint32_t number) { return machine_.compute_stream(device_, number); }

  // A contiguous tensor of bytes that fills a storage of its own.
  Tensor make(std::int64_t bytes) { return make(contiguous_layout(DType::kU8, {bytes})); }
  Tensor make(const Layout& layout) {
    const Tensor tensor =
        sim::make_tensor(machine_.allocate(storage_bytes(layout), machine_.current_stream()),
                         window(layout), machine_.new_version());
    fill(tensor);
    return tensor;
  }
  // A window on the same storage, with the same version counter.
  Tensor view(const Tensor& base, const Layout& layout) {
    return sim::make_tensor(base->storage, window(layout), base->version);
  }
  // In place.
  void write(const Tensor& tensor) {
    fill(tensor);
    ++tensor->version->value;
  }
  void use(const Tensor& tensor) {
    const Range range = sim::range_of(tensor);
    machine_.kernel("use", ++kernels_, {&range, 1}, {}, kKernelNs);
  }
  // Keeps the current stream busy.
  void work(sim::Time ns) { machine_.kernel("work", ++kernels_, {}, {}, ns); }

  std::uint64_t contents(const Tensor& tensor) { return checkers_.read(sim::range_of(tensor)); }
  std::int64_t copies(Step step) const { return checkers_.copies(step); }
  std::vector<std::string> hazards() const { return checkers_.hazards(); }

  // Nothing of the device or the host is in use, and nothing went wrong.
  void expect_clean() {
    EXPECT_EQ(machine_.live_storages(), 0);
    EXPECT_EQ(machine_.live_events(), 0);
    EXPECT_EQ(machine_.host_pool().stats().in_use_bytes.current, 0);
    EXPECT_EQ(hazards(), std::vector<std::string>{});
  }

 private:
  static constexpr sim::Time kKernelNs = 100;

  static sim::TensorLayout window(const Layout& layout) {
    const Hull touched = hull(layout);
    return {std::make_shared<const sim::Window>(
                sim::Window{layout, {touched.begin_bytes, touched.end_bytes}}),
            0};
  }
  void fill(const Tensor& tensor) {
    const Range range = sim::range_of(tensor);
    machine_.kernel("fill", ++kernels_, {}, {&range, 1}, kKernelNs);
  }

  Checkers checkers_;  // before the machine: it tells them of what dies with it
  sim::Machine machine_;
  std::uint32_t device_;
  std::uint64_t kernels_ = 0;
};

}  // namespace ferry::test
