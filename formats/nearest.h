// Finds names as people type them: in upper or lower case, and with typing errors. Error messages
// use it to suggest the name that was meant.
//
// A slip is an extra letter, a missing letter, a wrong letter, or two swapped letters (the
// Damerau-Levenshtein distance). A name is near if it differs from the typed text by at most one
// slip for every three letters. Short texts may have one slip, but never as many slips as letters.
// Case is ignored for ASCII letters only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

// Returns the number of slips between two texts; ignores case.
std::size_t slips(std::string_view a, std::string_view b);

// Returns the index of `typed` among the names: an exact match, or else one that ignores case.
std::optional<std::size_t> find_name(std::string_view typed, const std::vector<std::string>& names);

// Returns ": did you mean 'plan'?" with the nearest name; empty if no name is near, or if `typed`
// has more than 100 letters.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);

}  // namespace ferry
