// Saves a tape's tensors for backward. The hooks in force pack them. Without hooks the tensor
// itself is kept, and unpacking it is an error if it was written in place since.
//
// With Values, the unpacked contents are compared with the saved ones, and a difference is a
// hazard.
#pragma once

#include <string_view>
#include <vector>

#include "shared/seam/hooks.h"
#include "sim/check/hazard.h"
#include "sim/check/values.h"
#include "sim/gpu/machine.h"
#include "sim/program/graph.h"

namespace ferry::sim {

class Saves {
 public:
  // The arguments must outlive this object. `values`: null leaves contents unchecked.
  Saves(Machine& machine, const HookStack<Tensor>& hooks, const check::Values* values)
      : machine_(machine), hooks_(hooks), values_(values) {}
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  // Saves a value as a node named `name` saves its inputs.
  SavedTensor save(std::string_view name, const Value& value);
  Value unpack(std::string_view name, const SavedTensor& saved);

  // The node that is saving a tensor now, for listeners to the hooks.
  std::string_view saving_node() const { return saving_node_; }
  const std::vector<check::Hazard>& hazards() const { return wrong_values_.hazards(); }

 private:
  void check_unpacked(std::string_view name, const SavedTensor& saved, const Tensor& tensor);

  Machine& machine_;
  const HookStack<Tensor>& hooks_;
  const check::Values* values_;
  std::string_view saving_node_;
  check::HazardLog wrong_values_;
};

}  // namespace ferry::sim
