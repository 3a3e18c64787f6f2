// A scripted autograd over the simulated device's tensors. make_bytes makes it something to save.
#pragma once

#include <cstdint>
#include <memory>

#include "formats/layout.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/tensor.h"
#include "tests/support/scripted.h"

namespace ferry::test {

using Script = Scripted<sim::Tensor>;
using ScriptAutograd = ScriptedAutograd<sim::Tensor>;
static_assert(Autograd<ScriptAutograd>);

inline sim::Tensor make_bytes(sim::Machine& machine, std::int64_t bytes) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return sim::make_tensor(machine.allocate(bytes, machine.current_stream()), {window, 0},
                          machine.new_version());
}

}  // namespace ferry::test
