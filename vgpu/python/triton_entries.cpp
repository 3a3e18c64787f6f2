// The functions that ferry_triton.py calls: they load a Triton kernel and launch it.
//
// A launch tells the judge its reads and writes, charges the card's time for them, and queues the
// kernel on its stream (vgpu/triton). The kernel computes when the stream comes to it, on whichever
// thread that is, without the interpreter. A kernel is never unloaded, because it may be queued.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/runtime/control.h"
#include "vgpu/triton/launch.h"
#include "vgpu/triton/rebased.h"

namespace ferry::vgpu {
namespace {

// A line of the log has at most so many ranges of each kind.
constexpr std::size_t kMostRanges = 256;

thread_local std::string message;

// The ranges are sorted. Storages may overlap, as two of one memory do; they become one.
std::vector<Range> read_ranges(const std::uint64_t* numbers, std::size_t count) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    const Range next{numbers[2 * i], numbers[2 * i + 1]};
    if (!ranges.empty() && next.address < ranges.back().end()) {
      Range& last = ranges.back();
      last.bytes = std::max(last.end(), next.end()) - last.address;
    } else {
      ranges.push_back(next);
    }
  }
  return ranges;
}

std::int64_t total(const std::vector<Range>& ranges) {
  std::int64_t bytes = 0;
  for (const Range range : ranges) bytes += static_cast<std::int64_t>(range.bytes);
  return bytes;
}

DType dtype_of(triton::Elem elem) {
  switch (elem) {
    case triton::Elem::kF64:
      return DType::kF64;
    case triton::Elem::kF16:
      return DType::kF16;
    case triton::Elem::kBF16:
      return DType::kBF16;
    case triton::Elem::kF8E4M3:
    case triton::Elem::kF8E5M2:
      return DType::kF8;
    case triton::Elem::kI8:
      return DType::kI8;
    default:
      return DType::kF32;
  }
}

// What the judge and the clock are told of a launch.
struct Told {
  std::vector<Range> reads;
  std::vector<Range> writes;
  std::int64_t bytes = 0;  // that the launch reads and writes, without the gaps that were filled
  std::int64_t flops = 0;
};

// A kernel, and what was told of its latest launches (vgpu/triton/rebased.h).
class Loaded {
 public:
  triton::Kernel kernel;

  Told told(const triton::Launch& launch) {
    const triton::Rebased rebased(kernel, launch);
    const std::lock_guard lock(mutex_);
    Told told = told_of(rebased.launch());
    told.reads = rebased.real(std::move(told.reads));
    told.writes = rebased.real(std::move(told.writes));
    return told;
  }

 private:
  static constexpr std::size_t kKept = 64;

  Told told_of(const triton::Launch& launch) {
    for (const auto& [before, told] : latest_) {
      if (before == launch) return told;
    }
    triton::Accesses found = find_accesses(kernel, launch);
    Told told{.reads = {},
              .writes = {},
              .bytes = total(found.reads) + total(found.writes),
              .flops = found.flops};
    told.reads = triton::bounded(std::move(found.reads), launch.memory, kMostRanges);
    told.writes = triton::bounded(std::move(found.writes), launch.memory, kMostRanges);
    latest_.emplace_back(launch, told);
    if (latest_.size() > kKept) latest_.pop_front();
    return told;
  }

  std::mutex mutex_;
  std::deque<std::pair<triton::Launch, Told>> latest_;
};

void queue(Loaded& loaded, triton::Launch launch, cudaStream_t stream) {
  const AtPlace at_place;
  const triton::Kernel& kernel = loaded.kernel;
  Told told = loaded.told(launch);
  KernelCost cost;
  cost.flops = told.flops;
  cost.bytes = told.bytes;
  cost.computes_in = dtype_of(kernel.multiplies);
  const auto shared = std::make_shared<const triton::Launch>(std::move(launch));
  const auto body = [&kernel, shared] { run(kernel, *shared); };
  vgpu::launch(stream, kernel.name.c_str(), std::move(told.reads), std::move(told.writes), body,
               cost);
}

}  // namespace

extern "C" {

// Reads a kernel from TTIR. Returns null if it is not run; ferry_vgpu_triton_error says why.
void* ferry_vgpu_triton_load(const char* ttir, const char* name) {
  auto loaded = std::make_unique<Loaded>();
  try {
    read_kernel(ttir, name, loaded->kernel);
  } catch (const std::exception& error) {
    message = error.what();
    return nullptr;
  }
  return loaded.release();
}

// The error of the calling thread's latest load.
const char* ferry_vgpu_triton_error() { return message.c_str(); }

// `grid` has three numbers. `arguments` are the kernel's (triton::Launch). `memory` has the address
// and the bytes of each storage, sorted. Returns null, or an error message that is valid until the
// thread's next call.
const char* ferry_vgpu_triton_launch(void* kernel, const std::int64_t* grid,
                                     const std::uint64_t* arguments, std::size_t argument_count,
                                     const std::uint64_t* memory, std::size_t storage_count,
                                     void* stream) {
  try {
    triton::Launch launch{.grid = {grid[0], grid[1], grid[2]},
                          .arguments = {arguments, arguments + argument_count},
                          .memory = read_ranges(memory, storage_count)};
    queue(*static_cast<Loaded*>(kernel), std::move(launch), static_cast<cudaStream_t>(stream));
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
  return nullptr;
}

}  // extern "C"

}  // namespace ferry::vgpu
