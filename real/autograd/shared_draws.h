// Threads whose checkpointed segments draw from the CPU's generator, which is the process's.
//
// A segment's numbers can be had again where nobody else drew between its ends. Of several threads'
// segments that overlap at least one sees it; what draws outside of any segment nobody sees.
#pragma once

#include <cstdint>

namespace ferry::real {

// A segment (or a recompute of one) begins or ends on the calling thread. The number is another one
// whenever the last to say so was another thread: it is the same at both ends of a segment that had
// the generator to itself.
std::uint64_t mark_shared_draws() noexcept;

// Whether another thread than the calling one ever did.
bool draws_are_shared() noexcept;

}  // namespace ferry::real
