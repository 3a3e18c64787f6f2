// Names as people type them: in any case, and with a slip.
//
// A slip is a letter too many, too few, another one, or two that changed places; a name is near if
// it differs from the typed text by at most one slip in three letters. Only ASCII letters are
// compared without case.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

// The number of slips between the two, without regard to case.
std::size_t slips(std::string_view a, std::string_view b);

// The index of `typed` among the names: exactly as typed, else without regard to case.
std::optional<std::size_t> find_name(std::string_view typed, const std::vector<std::string>& names);

// ": did you mean 'plan'?" for the first of the nearest names; empty if none is near.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);

}  // namespace ferry
