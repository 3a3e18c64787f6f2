// The facts that a tape derives from a program before running it: the window of each type,
// the slots in a frame of each code, the time of each kernel, and a tag for the value it
// computes.
//
// Kernels of different statements have different tags, so that with values (sim/check/values.h)
// what one of them writes is never mistaken for what another does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/program/kernel_memory.h"

namespace ferry::sim {

// The times of kernels. The implementation must respect a program's measured times.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  virtual Time op_ns(const Op& op, DType computes_in) const = 0;
  // What the op's bytes take of the memory's whole rate: copies slow it for these. May be more than
  // its time.
  virtual Time op_memory_ns(const Op&) const { return 0; }
  KernelTime of(const Op& op, DType computes_in) const {
    return {op_ns(op, computes_in), op_memory_ns(op)};
  }
};

// The cost of an op, and what it computes.
struct PreparedOp {
  KernelTime time;
  std::uint64_t tag = 0;
  bool takes_memory = false;      // it may: KernelMemory is asked
  bool makes_last_first = false;  // its results, as KernelMemory says
};

struct PreparedCode {
  std::size_t slots = 0;         // slots of a frame
  std::int64_t work = 0;         // as formats/program_work.h counts it, without the codes it runs
  std::vector<PreparedOp> ops;   // by statement; those of others are empty
  bool reads_arguments = false;  // some op, view or call does
};

// It must outlive every tensor that has one of its windows. (No window is counted: runs on several
// threads share what was prepared, and would share the counts as well.)
struct Prepared {
  std::vector<std::shared_ptr<const Window>> windows;      // indexed by TypeId; they own nothing
  std::vector<PreparedCode> codes;                         // indexed by CodeId
  std::vector<std::unique_ptr<const Window>> own_windows;  // what `windows` shows
};

// `memory`: null: no kernel takes any.
Prepared prepared(const Program& program, const KernelTimes& times,
                  const KernelMemory* memory = nullptr);

}  // namespace ferry::sim
