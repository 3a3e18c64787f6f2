// Messages on stderr, beside the answer on stdout: a line each, "ferry: …".
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace ferry::cli {

// The line is made printable, for names come from files that anybody may have written, and control
// characters in them could act on the terminal. It is written whole, whoever else writes meanwhile.
void tell(const std::string& message);

template <class First, class... Rest>
void tell(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
  tell(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace ferry::cli
