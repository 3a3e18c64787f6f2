// A Triton kernel that can be launched on the virtual GPU, and a launch of it.
//
//   read_kernel   reads the TTIR that Triton made, once for each compiled kernel
//   find_accesses what a launch reads and writes, before it runs; for the judge and for its time
//   run           computes, in the order of its stream
//
// Addresses are addresses of this process. The memory that a launch may touch is that of its tensor
// arguments; anything else is an access out of bounds, and is reported with the line of the
// kernel's source.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stream_op.h"
#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

struct Kernel {
  std::string name;
  Module module;
  const Function* entry = nullptr;  // in `module`
  // Programs run one after the other, because some use the result of an atomic operation.
  bool is_sequential = false;
  // The positions of arguments through which the kernel may read and write at addresses that
  // depend on what it loads.
  std::vector<std::size_t> may_read{};
  std::vector<std::size_t> may_write{};
  Elem multiplies = Elem::kF32;  // the operands of its first tt.dot

  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
};

// Fills `kernel`. Throws InputError if the text is not TTIR, and std::runtime_error with the name
// and the line of an operation or a type that is not run.
void read_kernel(std::string_view ttir, const std::string& name, Kernel& kernel);

struct Launch {
  std::array<std::int64_t, 3> grid{1, 1, 1};
  // The kernel's arguments: an address, a whole number, or the bits of a double.
  std::vector<std::uint64_t> arguments{};
  // The storages of its tensors, sorted and apart from each other.
  std::vector<Range> memory{};

  bool operator==(const Launch&) const = default;
};

struct Accesses {
  std::vector<Range> reads{};  // sorted and apart from each other
  std::vector<Range> writes{};
  std::int64_t flops = 0;  // of tt.dot
  bool is_exact = false;   // no range is more than what the kernel touches
};

// Throws std::runtime_error for an access out of bounds whose address depends on no load.
Accesses find_accesses(const Kernel& kernel, const Launch& launch);

// At most `most` ranges that cover these: the smallest gaps are filled, but none between two
// storages.
std::vector<Range> bounded(std::vector<Range> ranges, const std::vector<Range>& memory,
                           std::size_t most);

// Throws std::runtime_error for an access out of bounds and for a failed assertion.
void run(const Kernel& kernel, const Launch& launch);

}  // namespace ferry::vgpu::triton
