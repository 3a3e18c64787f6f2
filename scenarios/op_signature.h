// The signature of an operator's call, as far as a program states it: its name, the layouts of its
// inputs and results, which inputs it writes, and its costs. Two calls with equal signatures are
// expected to take the same time, so measured times are stored by signature (kernel_times.h).
//
// A layout has no offset, and strides of dimensions of size 1 are ignored. If no statement of the
// program gives the layout of a tensor (a gradient that a body gets), the signature has none; the
// costs and results still distinguish such calls. Arguments that are not tensors (the dimension of
// a softmax, the stride of a convolution) are missing, because programs do not have them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

struct OpSignature {
  std::string name;
  std::vector<std::optional<Layout>> in;
  std::vector<Layout> out;
  std::vector<std::uint32_t> writes;  // positions in `in`
  std::int64_t flops = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  bool operator==(const OpSignature&) const = default;
};

// Brings the layouts into the form that signatures use.
OpSignature canonical(OpSignature signature);

// Calls `see` with each op of each code, in order. The program must have passed
// formats/program_check.h. `see` may change only the op's time.
void each_op(Program& program, const std::function<void(Op&, const OpSignature&)>& see);

}  // namespace ferry
