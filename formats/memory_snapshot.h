// PyTorch's memory snapshots: what torch.cuda.memory._dump_snapshot writes and
// torch.cuda._memory_viz shows. The segments and blocks of the caching allocator, and the trace of
// what it did before, if its history was recorded.
//
// Models torch.cuda.memory._snapshot of PyTorch 2.11 (torch/csrc/cuda/Module.cpp). A snapshot is a
// pickle, and is read by a reader that executes nothing (formats/pickle.h). Stack frames, contexts
// and annotations are read over; frames that are written are empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
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

// "alloc", as PyTorch names it.
std::string_view name(MemoryAction action);

// An entry of a device's trace.
struct MemoryEvent {
  MemoryAction action{};
  std::uint64_t address = 0;  // kOom: the bytes that the device had free
  std::int64_t bytes = 0;     // as requested; of segments all; kOom: as rounded
  std::uint64_t stream = 0;   // the number of its cudaStream_t
  std::int64_t time_us = 0;
  bool private_pool = false;  // a CUDA graph's, or a MemPool's
};

enum class BlockState : std::uint8_t { kInactive, kAllocated, kPendingFree };

std::string_view name(BlockState state);  // "inactive"

struct MemoryBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  // of an inactive one: the latest request's
  BlockState state = BlockState::kInactive;
  bool operator==(const MemoryBlock&) const = default;
};

struct MemorySegment {
  std::uint32_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint64_t stream = 0;
  bool small = false;
  bool expandable = false;  // then it is what is mapped in one piece
  bool private_pool = false;
  std::vector<MemoryBlock> blocks;  // in order; they fill it
};

struct MemorySnapshot {
  std::vector<MemorySegment> segments;           // by device and address
  std::vector<std::vector<MemoryEvent>> traces;  // by device
  AllocConf conf;
};

// Throws InputError: the file, the byte or the entry, what is there and what was expected; and
// std::system_error. Blocks fill their segments, and segments do not meet.
MemorySnapshot read_memory_snapshot(const std::filesystem::path& path);
MemorySnapshot parse_memory_snapshot(std::string_view bytes, const std::string& file);

std::string to_pickle(const MemorySnapshot& snapshot);
// Whole or not at all. Throws std::system_error.
void write_memory_snapshot(const std::filesystem::path& path, const MemorySnapshot& snapshot);

}  // namespace ferry
