// Children of this process, which have its memory and none of its threads (DataLoader's workers).
//
// What an offloader has under way stays where it is: its threads are not there to finish it, and
// may have held its locks. So nothing of the parent's is used in a child, and nothing of it dies
// there.
#pragma once

#include <cstdint>
#include <memory>

namespace ferry::real::python {

// Another number in every child, and the same throughout a process.
std::uint64_t process_generation() noexcept;

// In a child, this is never destroyed.
void keep_over_fork(const std::shared_ptr<void>& state);

}  // namespace ferry::real::python
