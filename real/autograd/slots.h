// The thread-local slots of Ferry that LibTorch copies to other threads: to the engine's threads
// with a backward, and wherever a ThreadLocalState goes.
//
// Each slot is a kind of c10::ThreadLocalDebugInfo. Up to LibTorch 2.12 a kind is a byte, and
// PyTorch's own kinds count up from 0. From 2.13 on it is the address of a name.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>

#include <cstdint>
#include <string_view>

namespace ferry::real {

#if TORCH_VERSION_MINOR >= 13

inline constexpr std::string_view kSlotNames[] = {"ferry hooks", "ferry graph task", "ferry trace",
                                                  "ferry ops", "ferry generator"};
constexpr c10::DebugInfoKind slot(std::uint8_t number) {
  return c10::DebugInfoKind(&kSlotNames[number]);
}

#else

constexpr c10::DebugInfoKind slot(std::uint8_t number) {
  return static_cast<c10::DebugInfoKind>(std::uint8_t{201} + number);
}

#endif

inline constexpr auto kHooksSlot = slot(0);
inline constexpr auto kGraphTaskSlot = slot(1);
inline constexpr auto kTraceSlot = slot(2);
inline constexpr auto kOpsSlot = slot(3);
inline constexpr auto kGeneratorSlot = slot(4);

}  // namespace ferry::real
