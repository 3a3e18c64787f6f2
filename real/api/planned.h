// Executes a plan: compares each saved tensor of a forward with the plan's entry for it, before the
// core acts on the plan's choice.
//
// The hooks see the packs of the forward, and those that recomputed segments pass on; a segment
// counts its own packs itself (SegmentPlan::packs). Tensors that a backward saves (under
// create_graph) have no entry, and are kept.
//
// A plan also names the options of the allocator that it was made for; where a device's are others,
// that is told, and nothing else is done.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <functional>
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

// Tells `warn` (none: LibTorch's log) of each device whose allocator has other options than the
// plan's.
void warn_of_allocators(const std::vector<c10::Device>& devices, const std::string& alloc_conf,
                        const std::function<void(const std::string&)>& warn);

}  // namespace ferry::real
