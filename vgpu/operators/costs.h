// The cost of an operator call: its FLOPs and bytes, and the type in which it computes. The clock
// needs it to simulate the call's time (vgpu/time/timeline.h).
//
// formats/op_costs.h has the formulas, which look at layouts only. This file takes the layouts from
// the tensors of a call.
#pragma once

#include <ATen/core/ivalue.h>

#include <deque>
#include <optional>
#include <vector>

#include "formats/op_costs.h"
#include "vgpu/operators/operator.h"
#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

// The cost of one call, as if one kernel did all of it. Only tensors on one kind of device count,
// because others take none of its memory. An element of a type that programs do not know (complex,
// quantized) counts as eight bytes. The object keeps no tensor. The operator must outlive it.
class CallCost {
 public:
  CallCost(const Operator& op, c10::DeviceType device);
  CallCost(const CallCost&) = delete;
  CallCost& operator=(const CallCost&) = delete;

  // Call each once: the first before the operator runs, the second afterwards.
  void add_arguments(c10::ArrayRef<const c10::IValue> arguments);
  void add_results(c10::ArrayRef<c10::IValue> results);
  KernelCost cost() const;

 private:
  bool counts(const at::Tensor& tensor) const;

  const Operator& op_;
  c10::DeviceType device_;
  std::deque<Layout> layouts_;  // a deque, so that its elements never move
  OpCall call_;
  std::optional<DType> computes_in_;
};

// Returns the cost of a call on the device.
KernelCost cost_of(const Operator& op, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& results);

}  // namespace ferry::vgpu
