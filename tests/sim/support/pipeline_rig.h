// Several simulated GPUs and an autograd without a program, to test the parts of a pipeline on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "formats/layout.h"
#include "shared/transfer/transfer.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/program/tape.h"
#include "tests/sim/support/world.h"

namespace ferry::test {

class PipelineRig {
 public:
  using Value = sim::Value;

  explicit PipelineRig(std::uint32_t devices)
      : machine_(options(devices)), tape_(builder_.program, machine_, times_, nullptr) {
    machine_.add_consumer(&checkers_);
  }

  sim::Machine& machine() { return machine_; }
  sim::SimAutograd autograd() { return tape_.autograd(); }
  std::vector<std::string> hazards() const { return checkers_.hazards(); }
  std::vector<sim::SimDevice> devices() {
    std::vector<sim::SimDevice> all;
    for (std::uint32_t d = 0; d < machine_.devices(); ++d) all.emplace_back(machine_, d);
    return all;
  }
  Place<sim::SimDevice> place(std::uint32_t device) {
    return {device, sim::SimDevice(machine_, device), machine_.compute_stream(device, 0),
            machine_.transfer_stream(device, 0)};
  }

  // On the current stream, written there; it requires grad.
  Value leaf(DType dtype = DType::kF32) { return autograd().leaf(fresh(dtype), true); }
  sim::Tensor fresh(DType dtype = DType::kF32) {
    const Layout layout = contiguous_layout(dtype, {256});
    auto window = std::make_shared<sim::Window>(sim::Window{layout, {0, storage_bytes(layout)}});
    const sim::Tensor tensor =
        sim::make_tensor(machine_.allocate(storage_bytes(layout), machine_.current_stream()),
                         {window, 0}, machine_.new_version());
    kernel("fill", {}, tensor);
    return tensor;
  }
  // A kernel that reads these and makes a tensor: each one's gradient is a copy of the output's.
  Value op(const std::vector<Value>& in) {
    Value out{fresh(), {}};
    kernel("op", in, out.tensor);
    return autograd()
        .node(in, {out},
              [this, count = in.size()](const std::vector<Value>& gradients) {
                return gradients_of(count, gradients);
              })
        .front();
  }
  // The same, and it saves what it reads, and reads that in backward.
  Value saving_op(const std::vector<Value>& in) {
    Value out{fresh(), {}};
    kernel("op", in, out.tensor);
    return autograd()
        .function(
            in, {out},
            [this](const std::vector<Value>& saved, std::vector<Value> gradients) {
              gradients.insert(gradients.end(), saved.begin(), saved.end());
              return gradients_of(saved.size(), gradients);
            },
            AbsentGradient::kZeros)
        .front();
  }
  void backward(const std::vector<Value>& roots, bool retain_graph = false) {
    autograd().backward(roots, std::vector<Value>(roots.size()), retain_graph);
  }

 private:
  struct Times final : sim::KernelTimes {
    sim::Time op_ns(const Op&, DType) const override { return 1000; }
  };
  static sim::MachineOptions options(std::uint32_t devices) {
    sim::MachineOptions options;
    options.devices = devices;
    return options;
  }
  std::vector<Value> gradients_of(std::size_t count, const std::vector<Value>& from) {
    std::vector<Value> result(count);
    if (!from.front().tensor) return result;
    for (Value& gradient : result) gradient.tensor = copy_of(from);
    return result;
  }
  sim::Tensor copy_of(const std::vector<Value>& from) {
    const sim::Tensor copy = fresh();
    kernel("grad", from, copy);
    return copy;
  }
  void kernel(std::string_view name, const std::vector<Value>& in, const sim::Tensor& out) {
    std::vector<Range> reads;
    for (const Value& value : in) {
      if (value.tensor) reads.push_back(sim::range_of(value.tensor));
    }
    const Range write = sim::range_of(out);
    machine_.kernel(name, 1, reads, {&write, 1}, 1000);
  }

  Builder builder_;
  Times times_;
  Checkers checkers_;
  sim::Machine machine_;
  sim::Tape tape_;
};

}  // namespace ferry::test
