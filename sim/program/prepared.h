// What a tape finds out once about a program, before it runs any of it: the window of each type,
// how many slots a frame of each code has, how long each kernel takes, and a tag for what it
// computes.
//
// Kernels of different statements have different tags, so that with values (sim/check/values.h)
// what one of them writes is never mistaken for what another does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

// How long things take. A program's measured times are the implementation's to respect.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  virtual Time op_ns(const Op& op, DType computes_in) const = 0;
};

// What a code's statements cost and compute.
struct PreparedCode {
  std::size_t slots = 0;  // of a frame
  std::int64_t work = 0;  // formats/program_work.h's, without what it runs
  std::vector<Time> durations;
  std::vector<std::uint64_t> tags;
};

struct Prepared {
  std::vector<std::shared_ptr<const Window>> windows;  // by TypeId
  std::vector<PreparedCode> codes;                     // by CodeId
};

Prepared prepared(const Program& program, const KernelTimes& times);

// FNV-1a: the same on every platform.
std::uint64_t hash_of(std::string_view text);

}  // namespace ferry::sim
