// The signature of an operator's call, as far as a program states it: its name, the layouts of what
// it reads and makes, what it writes in place, and its costs. Two calls with the same signature are
// expected to take as long.
//
// A layout is stated without its offset, and the stride of a dimension of size 1 means nothing. A
// tensor whose layout no statement of the program says (a gradient that a body is handed) is stated
// as none; the costs and the results tell such calls apart all the same. It lacks numbers that are
// no tensors (the dimension of a softmax, the stride of a convolution), because programs have none.
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

// Calls `see` with each op of each code, in their order. The program must have passed
// formats/program_check.h; `see` may change the op's time, and nothing else.
void each_op(Program& program, const std::function<void(Op&, const OpSignature&)>& see);

}  // namespace ferry
