// What an operator costs: FLOPs, bytes, and the type that it computes in.
#pragma once

#include <ATen/core/ivalue.h>

#include <deque>
#include <optional>
#include <vector>

#include "formats/op_costs.h"
#include "vgpu/operators/operator.h"
#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

// Of one call, as if one kernel did it all, from the layouts of its tensors on one kind of device;
// those elsewhere take none of its memory. An element of a type that programs do not know (complex,
// quantized) counts as eight bytes. It keeps no tensor; the operator must outlive it.
class CallCost {
 public:
  CallCost(const Operator& op, c10::DeviceType device);
  CallCost(const CallCost&) = delete;
  CallCost& operator=(const CallCost&) = delete;

  // Each once, in this order: before the call, and after.
  void add_arguments(c10::ArrayRef<const c10::IValue> arguments);
  void add_results(c10::ArrayRef<c10::IValue> results);
  KernelCost cost() const;

 private:
  bool counts(const at::Tensor& tensor) const;

  const Operator& op_;
  c10::DeviceType device_;
  std::deque<Layout> layouts_;  // stay where they are
  OpCall call_;
  std::optional<DType> computes_in_;
};

// Of a call on the device.
KernelCost cost_of(const Operator& op, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& results);

}  // namespace ferry::vgpu
