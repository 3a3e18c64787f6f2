// Trying in a child of the process what may end it: kernels that check none of their arguments do,
// without Ferry too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace ferry::sweep {

// What `probe` returns there; none where it did not come to that. The child has this thread alone.
std::optional<std::size_t> in_a_child(const std::function<std::size_t()>& probe);

}  // namespace ferry::sweep
