// The slots of a thread that LibTorch carries along: to the engine's threads with a backward, and
// wherever a ThreadLocalState goes.
//
// They are kinds of c10::ThreadLocalDebugInfo, which takes any one-byte kind; PyTorch's own count
// up from 0.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>

namespace ferry::real {

inline constexpr auto kHooksSlot = static_cast<c10::DebugInfoKind>(std::uint8_t{201});
inline constexpr auto kGraphTaskSlot = static_cast<c10::DebugInfoKind>(std::uint8_t{202});
inline constexpr auto kTraceSlot = static_cast<c10::DebugInfoKind>(std::uint8_t{203});
inline constexpr auto kOpsSlot = static_cast<c10::DebugInfoKind>(std::uint8_t{204});
inline constexpr auto kGeneratorSlot = static_cast<c10::DebugInfoKind>(std::uint8_t{205});

}  // namespace ferry::real
