// Prints messages on stderr, one line each: "ferry: …". Results go to stdout (output.h).
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace ferry::cli {

// Control characters are escaped: names come from files that anybody may have written, and could
// act on the terminal. The line is one write, so output of other writers does not split it.
void tell(const std::string& message);

template <class First, class... Rest>
void tell(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
  tell(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace ferry::cli
