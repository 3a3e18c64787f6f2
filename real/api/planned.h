// Executes a plan: compares each saved tensor of a forward with the plan's entry for it, before the
// core acts on the plan's choice.
//
// The hooks see the packs of the forward, and those that recomputed segments pass on; a segment
// counts its own packs itself (SegmentPlan::packs). Tensors that a backward saves (under
// create_graph) have no entry, and are kept.
//
// Where other forwards are allowed (other_forwards.h), the plan's end may be missed by tensors of
// kTailBytes at most, which stay where they are in any case: a training divides its loss by the
// number of its tokens, or scales it, and a plan's loss may do so or not.
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
#include "real/api/other_forwards.h"
#include "real/autograd/torch_autograd.h"

namespace ferry::real {

inline constexpr std::int64_t kTailBytes = 1024;

class PlannedHooks final : public Hooks<at::Tensor> {
 public:
  // `hooks` act on the plan's choices; `of_others` see what other forwards save.
  PlannedHooks(std::vector<PlanEntry> entries, std::shared_ptr<Hooks<at::Tensor>> hooks,
               std::shared_ptr<OtherForwards> others, std::shared_ptr<Hooks<at::Tensor>> of_others);

  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  // The present forward is cut short: it will have fewer packs than the plan.
  void abandon_run() { failed_ = true; }
  // The present forward is over; a new one begins, and ends the last one if nobody did. Throws
  // PlanMismatch if it saved fewer tensors than planned; one that saved none (an evaluation) does
  // not count as a forward.
  void end_run();
  void begin_run() { end_run(); }

 private:
  void check(std::uint64_t pack, const at::Tensor& tensor);

  std::vector<PlanEntry> entries_;
  std::shared_ptr<Hooks<at::Tensor>> hooks_;
  std::shared_ptr<OtherForwards> others_;
  std::shared_ptr<Hooks<at::Tensor>> of_others_;
  std::atomic<std::uint64_t> packs_ = 0;
  std::atomic<bool> failed_ = false;  // an error cut the last forward short
};

// Tells `warn` (none: LibTorch's log) of each device whose allocator has other options than the
// plan's.
void warn_of_allocators(const std::vector<c10::Device>& devices, const std::string& alloc_conf,
                        const std::function<void(const std::string&)>& warn);

}  // namespace ferry::real
