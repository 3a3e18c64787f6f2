// A checkpointer on a simulated device with a tape of four operators. A test writes the functions:
// which of these they run, and what of that they save.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "shared/checkpoint/checkpointer.h"
#include "shared/seam/hooks.h"
#include "shared/seam/rules.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/program/autograd.h"
#include "sim/program/tape.h"
#include "sim/run/training/checkpoints.h"

namespace ferry::test {

class OpsRig final : private sim::KernelTimes {
 public:
  using Value = sim::Value;
  using Saved = std::unique_ptr<ferry::Saved<sim::Tensor>>;

  // Op k makes a tensor of kElements[k] elements, and the last one draws a random number.
  static constexpr std::array<std::int64_t, 4> kElements = {16, 32, 48, 64};
  static constexpr std::size_t kDraws = kElements.size() - 1;
  // A log of ops names it so.
  static std::string name_of(std::size_t op) {
    return "op" + std::to_string(op) + " -> " + std::to_string(kElements.at(op)) + " f32";
  }

  explicit OpsRig(Rules rules = {}, const sim::MachineOptions& options = {})
      : machine_(options),
        tape_(builder_.program, machine_, *this, nullptr),
        checkpointer_(device(), autograd(), rules) {}

  sim::SimAutograd autograd() { return tape_.autograd(); }
  sim::Machine& machine() { return machine_; }
  sim::SimDevice device() { return sim::SimDevice(machine_); }
  Value input() const { return tape_.globals().front(); }
  sim::Tensor run_op(std::size_t op) { return tape_.call(codes_.at(op), {input()}).front().tensor; }
  // As autograd saves a tensor; null: no hooks apply.
  Saved save(const sim::Tensor& tensor) { return autograd().hooks().pack(tensor); }
  std::uint64_t generator() { return autograd().ambient({}, true).state.random; }

  Checkpointer<sim::SimDevice, sim::SimAutograd>& checkpointer() { return checkpointer_; }

 private:
  struct Builder : ferry::Builder {
    Builder() { global(GlobalKind::kInput, type({16}, DType::kF32)); }
  };
  sim::Time op_ns(const Op&, DType) const override { return 1; }
  std::vector<CodeId> write_ops() {
    std::vector<CodeId> codes;
    for (std::size_t k = 0; k < kElements.size(); ++k) {
      const std::string name = "op" + std::to_string(k);
      const TypeId type = builder_.type({kElements[k]}, DType::kF32);
      codes.push_back(builder_.code(CodeKind::kSegment, name));
      Op op;
      op.name = name;
      op.in = {builder_.argument(codes[k])};
      op.out = {builder_.slot(codes[k])};
      op.types = {type};
      op.random = k == kDraws;
      builder_.result(codes[k], op.out.front());
      builder_.add(codes[k], std::move(op));
    }
    return codes;
  }

  Builder builder_;
  std::vector<CodeId> codes_ = write_ops();
  sim::Machine machine_;
  sim::Tape tape_;
  Checkpointer<sim::SimDevice, sim::SimAutograd> checkpointer_;
};

}  // namespace ferry::test
