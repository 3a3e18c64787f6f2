// A launch with its tensors at addresses that do not depend on where they are.
//
// What a launch touches (find_accesses) is the same, relative to its tensors, wherever these are. A
// step of a training mostly launches what the step before did, with tensors elsewhere. So whoever
// keeps what was found keeps it by the rebased launch, and moves the ranges to the real one.
//
// The storages get places in the order in which the arguments name them, far apart from each other.
// A storage that no argument points into comes last. An argument that points into none stays.
#pragma once

#include <cstdint>
#include <vector>

#include "vgpu/triton/launch.h"

namespace ferry::vgpu::triton {

class Rebased {
 public:
  Rebased(const Kernel& kernel, const Launch& real);

  const Launch& launch() const { return launch_; }
  // Where these bytes of the rebased launch are in the real one; sorted.
  std::vector<Range> real(std::vector<Range> ranges) const;

 private:
  Launch launch_;
  std::vector<Range> storages_;  // of the real launch, in the order of their places
};

}  // namespace ferry::vgpu::triton
