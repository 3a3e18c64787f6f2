// Executes a plan: compares each saved tensor of a forward with the plan's entry for it, before the
// core acts on the plan's choice.
//
// The hooks see the packs of the forward, and those that recomputed segments pass on; a segment
// counts its own packs itself (SegmentPlan::packs). Tensors that a backward saves (under
// create_graph) have no entry, and are kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {

class PlannedHooks final : public Hooks<at::Tensor> {
 public:
  PlannedHooks(std::vector<PlanEntry> entries, std::shared_ptr<Hooks<at::Tensor>> hooks);

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  // The present forward is cut short: it will have fewer packs than the plan.
  void abandon_run() { failed_ = true; }
  // A new forward begins. Throws PlanMismatch if the last one saved fewer tensors than planned; one
  // that saved none (an evaluation) does not count as a forward.
  void begin_run();

 private:
  std::vector<PlanEntry> entries_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
  std::atomic<std::uint64_t> packs_ = 0;
  std::atomic<bool> failed_ = false;  // an error cut the last forward short
};

}  // namespace ferry::real
