// torch.amp.GradScaler around an optimizer's step: it unscales gradients in place and searches them
// for values that are not finite. The host waits for the result, and the scale is updated.
//
// Source: torch/amp/grad_scaler.py (2.11), for scales on one device. A fused optimizer unscales by
// itself: then the gradients are only searched, and the host does not wait. The scale and the count
// of steps since it grew live from the first step on: one number each. Left out: the product of the
// loss and the scale, one number, and the four bytes that item() copies. Every step is taken,
// because only the values tell which ones a training skips.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/run/training/foreach.h"

namespace ferry::sim {

class GradScaler {
 public:
  struct Gradients {
    DType dtype = DType::kF32;
    TensorList list;
  };

  // Both must outlive it.
  GradScaler(Machine& machine, Foreach& foreach) : machine_(machine), foreach_(foreach) {}

  // Does what unscale_() does. Throws std::runtime_error for gradients in fp16, as PyTorch does.
  void unscale(const std::vector<Gradients>& gradients);
  // Does what step() does first for a fused optimizer, if nobody unscaled its gradients.
  void search(const std::vector<Gradients>& gradients);
  // Does what step() does first for other optimizers: found_inf.item().
  void wait_for_what_was_found();
  void update();

  std::size_t kept_storages() const { return scale_.size() + growth_tracker_.size(); }

 private:
  TensorList number(std::int64_t bytes, MemoryKind kind);
  TensorList filled(std::int64_t bytes, MemoryKind kind);
  void make_scale();
  void check(const std::vector<Gradients>& gradients, const TensorList& inverse);

  Machine& machine_;
  Foreach& foreach_;
  TensorList scale_, growth_tracker_;  // one tensor each; empty: not made yet
  TensorList found_inf_;               // of this step
};

}  // namespace ferry::sim
