// Reads and writes PyTorch's memory snapshots, which torch.cuda.memory._dump_snapshot writes and
// torch.cuda._memory_viz shows. A snapshot has the segments and blocks of the caching allocator
// and, if its history was recorded, a trace of what the allocator did before.
//
// Models torch.cuda.memory._snapshot of PyTorch 2.11 (torch/csrc/cuda/Module.cpp). A snapshot is a
// pickle; the reader executes nothing (formats/pickle.h). It skips contexts and user's metadata. A
// stack that is not as PyTorch writes it counts as empty, because only explanations need it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "formats/alloc_conf.h"

namespace ferry {

enum class MemoryAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kUserDefined,
};

// The name in PyTorch, such as "alloc".
std::string_view name(MemoryAction action);

// A frame of the stack that requested memory, of Python or of C++.
struct MemoryFrame {
  std::string file;
  std::string function;
  std::int64_t line = 0;
  bool operator<(const MemoryFrame& other) const {
    return std::tie(file, function, line) < std::tie(other.file, other.function, other.line);
  }
};

using StackId = std::uint32_t;  // an index into MemorySnapshot::stacks
inline constexpr StackId kNoStack = 0;

// An entry of a device's trace.
struct MemoryEvent {
  MemoryAction action{};
  std::uint64_t address = 0;  // kOom: the bytes that were free on the device
  std::int64_t bytes = 0;     // as requested; for segments, their size; kOom: as rounded
  std::uint64_t stream = 0;   // the cudaStream_t as a number
  std::int64_t time_us = 0;
  bool private_pool = false;  // the pool of a CUDA graph or of a MemPool
  StackId stack = kNoStack;
};

enum class BlockState : std::uint8_t { kInactive, kAllocated, kPendingFree };

std::string_view name(BlockState state);  // "inactive"

struct MemoryBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  // for an inactive block: of its last request
  BlockState state = BlockState::kInactive;
  StackId stack = kNoStack;  // of the latest request
  // Stacks do not count: the simulated allocator has none.
  bool operator==(const MemoryBlock& other) const {
    return address == other.address && bytes == other.bytes &&
           requested_bytes == other.requested_bytes && state == other.state;
  }
};

struct MemorySegment {
  std::uint32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint64_t stream = 0;
  bool small = false;
  bool expandable = false;  // true: this is one contiguous mapped part of an expandable segment
  bool private_pool = false;
  std::vector<MemoryBlock> blocks;  // in order; they fill the segment
};

// A region of the program that PyTorch marks on the time line: a step of an optimizer, or a
// record_function of the user.
struct MemoryMark {
  std::string name;  // "Optimizer.step#AdamW.step"
  bool begins = true;
  std::int64_t time_us = 0;
};

struct MemorySnapshot {
  std::vector<MemorySegment> segments;           // sorted by device and address
  std::vector<std::vector<MemoryEvent>> traces;  // one for each device
  AllocConf conf;
  std::vector<MemoryMark> marks{};
  std::vector<MemoryFrame> frames{};  // different ones
  // Innermost frame first, as indexes into `frames`. The first stack is kNoStack's, which is empty;
  // no other two are equal. May be empty if nothing has a stack.
  std::vector<std::vector<std::uint32_t>> stacks{};
};

// Throws InputError, which names the file, the byte or entry, what was expected and what was found;
// and std::system_error. In the result, blocks fill their segments, and segments do not overlap.
MemorySnapshot read_memory_snapshot(const std::filesystem::path& path);
MemorySnapshot parse_memory_snapshot(std::string_view bytes, const std::string& file);

std::string to_pickle(const MemorySnapshot& snapshot);
// Writes the file completely or not at all. Throws std::system_error.
void write_memory_snapshot(const std::filesystem::path& path, const MemorySnapshot& snapshot);

}  // namespace ferry
