// The facts that a tape derives from a program before it runs it: the window of each type, the
// slots in a frame of each code, the time of each kernel, and a tag for the value that the kernel
// computes.
//
// Kernels of different statements have different tags (if their names differ, up to a collision of
// 64-bit hashes). So with values (sim/check/values.h) the result of one is not mistaken for that of
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"
#include "sim/program/kernel_memory.h"

namespace ferry::sim {

// The times of kernels. An implementation must respect the measured times of a program.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  virtual Time op_ns(const Op& op, DType computes_in) const = 0;
  // The time that the op's bytes would take at the memory's whole rate: copies slow the op in this
  // time. It may be longer than the op's own time.
  virtual Time op_memory_ns(const Op&) const { return 0; }
  KernelTime of(const Op& op, DType computes_in) const {
    return {op_ns(op, computes_in), op_memory_ns(op)};
  }
};

// The cost of an op, and what it computes.
struct PreparedOp {
  KernelTime time;
  std::uint64_t tag = 0;
  bool takes_memory = false;      // it may allocate: then KernelMemory is asked
  bool makes_last_first = false;  // KernelMemory::makes_last_first
};

struct PreparedCode {
  std::size_t slots = 0;         // slots of a frame
  std::int64_t work = 0;         // as in formats/program_work.h, without the codes that it runs
  std::vector<PreparedOp> ops;   // by statement; empty for statements that are no ops
  bool reads_arguments = false;  // some op, view or call reads them
};

// It must outlive every tensor that has one of its windows. Windows are not reference-counted: runs
// on several threads share them, and would share the counts too.
struct Prepared {
  std::vector<std::shared_ptr<const Window>> windows;      // indexed by TypeId; they own nothing
  std::vector<PreparedCode> codes;                         // indexed by CodeId
  std::vector<std::unique_ptr<const Window>> own_windows;  // own what `windows` points to
};

// `memory`: null: kernels allocate none.
Prepared prepared(const Program& program, const KernelTimes& times,
                  const KernelMemory* memory = nullptr);

}  // namespace ferry::sim
