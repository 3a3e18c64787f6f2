// Handles child processes, such as DataLoader's workers, which have the memory of this process but
// not its threads.
//
// The copies of an offloader stay unfinished in a child: its threads are missing, and may have held
// its locks. So a child uses nothing of its parent's offloaders, and destroys nothing of them.
#pragma once

#include <cstdint>
#include <memory>

namespace ferry::real::python {

// Returns a number that is constant in a process and different in each child.
std::uint64_t process_generation() noexcept;

// Makes sure that a child never destroys `state`.
void keep_over_fork(const std::shared_ptr<void>& state);

}  // namespace ferry::real::python
