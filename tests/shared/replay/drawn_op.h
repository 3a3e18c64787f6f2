// Draws an operator by hand, and what it is called with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/choices/draws.h"
#include "sim/gpu/device.h"
#include "tests/shared/replay/hand_ops.h"
#include "tests/shared/replay/span_results.h"

namespace ferry::test {

inline std::size_t draw_one(choices::Draws& draws, std::size_t of) {
  return static_cast<std::size_t>(draws.in(0, static_cast<int>(of)));
}

// Returns the tensor, or a window on it.
inline sim::Tensor draw_view(choices::Draws& draws, const HandOps& ops, const sim::Tensor& tensor) {
  const int how = draws.in(0, 12);
  if (!tensor->storage || !ops.is_plain(tensor) || how > 4) return tensor;
  if (how == 0) return ops.sparse(tensor);
  if (how == 1) return ops.odd(tensor);
  const int begin = draws.in(0, HandOps::kCells);
  return ops.view(tensor, begin, draws.in(1, HandOps::kCells - begin + 1));
}

struct DrawnOp {
  // Its arguments are some of `tensors`.
  DrawnOp(choices::Draws& draws, const HandOps& ops, const std::vector<sim::Tensor>& tensors,
          std::uint64_t number) {
    op.number = number;
    op.overwrites = draws.one_in(2);
    op.blank = draws.one_in(5);
    for (int count = op.blank ? 0 : draws.in(0, 4); count > 0; --count) {
      // The latest ones more often.
      const std::size_t back =
          std::min(draw_one(draws, tensors.size()), draw_one(draws, tensors.size()));
      arguments.push_back(draw_view(draws, ops, tensors[tensors.size() - 1 - back]));
      op.written.push_back(draws.one_in(3));
    }
    for (int count = op.blank ? 1 : draws.in(0, 3); count > 0; --count) {
      op.outputs.push_back(draw_output(draws));
    }
    if (draws.one_in(24)) op.again_bytes = draws.one_in(2) ? -1 : 2 * SpanResults::kBytes;
  }

  HandOp op;
  std::vector<sim::Tensor> arguments;

 private:
  HandOp::Output draw_output(choices::Draws& draws) const {
    HandOp::Output output;
    const int kind = draws.in(0, 12);
    if (kind == 0 && !arguments.empty()) {
      output = {HandOp::Makes::kView, draw_one(draws, arguments.size()), false};
    } else if (kind == 1 && !op.outputs.empty()) {
      output = {HandOp::Makes::kAgain, 0, false};
    } else if (kind == 2) {
      output.makes = HandOp::Makes::kNothing;
    }
    output.odd = output.makes == HandOp::Makes::kNew && draws.one_in(12);
    return output;
  }
};

}  // namespace ferry::test
