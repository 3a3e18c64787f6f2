// The limits of what Ferry reads and simulates, for readers, checkers and the simulator.
//
// They are far above what programs need, but low enough that no file and no option can make Ferry
// overflow, run out of stack, or use unbounded memory and time. A reader that reaches a limit
// throws InputError with file and line; a simulation throws LimitReached (formats/error.h).
// formats/PROGRAM.md and formats/STREAM_LOG.md list the limits for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::limits {

// Texts.
inline constexpr std::size_t kLineBytes = std::size_t{1} << 26;
inline constexpr std::size_t kFileBytes = std::size_t{1} << 30;  // a file that is read as a whole
inline constexpr std::size_t kNameBytes = 4096;

// Quantities. A thousand times a time, or a number of bytes, fits in 63 bits.
inline constexpr std::int64_t kTimeNs = 1'000'000'000'000'000;     // an op or a whole step: 11 days
inline constexpr std::int64_t kBytes = std::int64_t{1} << 50;      // an op's accesses, or a memory
inline constexpr std::int64_t kFlops = 1'000'000'000'000'000'000;  // per op
inline constexpr std::int64_t kKernels = 1000;                     // per op
inline constexpr std::int64_t kMatrixSize = std::int64_t{1} << 31;  // a dimension of a product
inline constexpr std::size_t kMatrixProducts = 2;                   // per op
inline constexpr std::int64_t kFlopsPerUs = 1'000'000'000'000'000;
inline constexpr std::int64_t kBytesPerUs = 1'000'000'000'000;

// Tensors. The simulated device has addresses for twice as much (sim/gpu/device_pool.h).
inline constexpr std::int64_t kStorageBytes = std::int64_t{1} << 43;
inline constexpr std::size_t kDimensions = 64;

// Codes. Work is the number of slots that a step's statements name, counted each time that a
// statement runs (formats/program_work.h).
inline constexpr std::uint32_t kSlots = 1u << 22;    // slot numbers of a frame are below this
inline constexpr std::size_t kLiveSlots = 1u << 24;  // in all frames at a time
inline constexpr std::uint32_t kStreams = 1u << 10;
inline constexpr std::size_t kDepth = 200;  // nesting of calls, and of bodies of nodes
inline constexpr std::int64_t kWork = std::int64_t{1} << 28;

}  // namespace ferry::limits
