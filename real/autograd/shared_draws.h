// Detects threads whose checkpointed segments use the CPU's random generator at the same time. The
// generator belongs to the process.
//
// The numbers of a segment can be repeated if nobody else used the generator between its begin and
// its end. If segments on several threads overlap, at least one of them detects it. Use of the
// generator outside segments is not detected.
#pragma once

#include <cstdint>

namespace ferry::real {

// Call it on the thread where a segment, or its recompute, begins or ends. The result changes
// whenever the previous call was on another thread. So it is the same at both ends of a segment
// that had the generator to itself.
std::uint64_t mark_shared_draws() noexcept;

// True if another thread than the calling one ever called it.
bool draws_are_shared() noexcept;

}  // namespace ferry::real
