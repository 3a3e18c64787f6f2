// Executes a plan: compares each saved tensor of a forward with its entry in the plan, before the
// core acts on the choice in the entry.
//
// The hooks see the packs of the forward, and those that recomputed segments give to them. A
// segment checks the number of its own packs (SegmentPlan::packs). Tensors that a backward saves
// (under create_graph) have no entry, and are kept.
//
// If other forwards are allowed (other_forwards.h), tensors of at most kTailBytes may be missing or
// added at the end; these are never offloaded. This is because a training may divide its loss by
// the number of tokens, or scale it, and the loss of the plan may not, or the reverse.
//
// A plan also names the allocator options that it was made for. If a device has others, Ferry only
// warns.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "real/api/other_forwards.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {

inline constexpr std::int64_t kTailBytes = 1024;

class PlannedHooks final : public Hooks<at::Tensor> {
 public:
  // `hooks` execute the choices of the plan; `of_others` see what other forwards save.
  PlannedHooks(std::vector<PlanEntry> entries, std::shared_ptr<Hooks<at::Tensor>> hooks,
               std::shared_ptr<OtherForwards> others, std::shared_ptr<Hooks<at::Tensor>> of_others);

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  // The present forward is cut short, so it may have fewer packs than the plan.
  void abandon_run() { failed_ = true; }
  // Ends the present forward. begin_run does so too, in case nobody did. Throws PlanMismatch if the
  // forward saved fewer tensors than planned. A forward that saved none, such as an evaluation,
  // does not count.
  void end_run();
  void begin_run() { end_run(); }

 private:
  void check(std::uint64_t pack, const at::Tensor& tensor);

  std::vector<PlanEntry> entries_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
  std::shared_ptr<OtherForwards> others_;
  std::shared_ptr<Hooks<at::Tensor>> of_others_;
  std::atomic<std::uint64_t> packs_ = 0;
  std::atomic<bool> failed_ = false;  // an error cut the present forward short
};

// Warns of each device whose allocator has other options than the plan. If `warn` is empty, the
// warning goes to LibTorch's log.
void warn_of_allocators(const std::vector<c10::Device>& devices, const std::string& alloc_conf,
                        const std::function<void(const std::string&)>& warn);

}  // namespace ferry::real
