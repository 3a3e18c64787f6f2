// Finds which saved tensors each backward needs. It makes a run without recomputes, under hooks
// that keep every tensor and record the graph task in which it is unpacked. recomputes.h works out
// from this how often a checkpoint must be recomputed.
//
// A recompute changes neither what forward saves nor what backward reaches. So a run with
// checkpoints must get back the same tensors in the same tasks. Tensors that backwards save, for
// graphs of gradients, are never recomputed and are not listed.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "shared/seam/hooks.h"
#include "sim/program/tape.h"

namespace ferry::verify {

using GraphTasks = std::set<GraphTaskId>;
// For each call of main: the tensors that hooks see, in packing order, each with its graph tasks.
using Needs = std::vector<std::vector<GraphTasks>>;

class NeedsRun final : private sim::KernelTimes {
 public:
  explicit NeedsRun(const Program& program)
      : machine_(sim::MachineOptions{}), tape_(program, machine_, *this, nullptr) {
    tape_.before_call([this] { needs_.emplace_back(); });
    {
      const HooksGuard<sim::SimAutograd> guard(tape_.autograd(), std::make_shared<Pair>(*this));
      tape_.run();
    }
    tape_.drop_frames();
  }
  Needs take() { return std::move(needs_); }

 private:
  class Kept final : public Saved<sim::Tensor> {
   public:
    Kept(NeedsRun& run, const sim::Tensor& tensor)
        : run_(run),
          tensor_(std::make_shared<sim::TensorImpl>(*tensor)),
          call_(run.needs_.size() - 1),
          ordinal_(run.needs_.back().size()) {
      run_.needs_.back().emplace_back();
    }
    sim::Tensor unpack() override {
      run_.needs_[call_][ordinal_].insert(run_.tape_.autograd().graph_task());
      return tensor_;
    }

   private:
    NeedsRun& run_;
    const sim::Tensor tensor_;
    const std::size_t call_;
    const std::size_t ordinal_;
  };

  class Pair final : public Hooks<sim::Tensor> {
   public:
    explicit Pair(NeedsRun& run) : run_(run) {}
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
      if (run_.tape_.autograd().graph_task() != GraphTaskId::kNone) return nullptr;
      return std::make_unique<Kept>(run_, tensor);
    }

   private:
    NeedsRun& run_;
  };

  sim::Time op_ns(const Op&, DType) const override { return 1; }

  Needs needs_;
  sim::Machine machine_;
  sim::Tape tape_;
};

}  // namespace ferry::verify
