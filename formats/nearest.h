// Names as people type them: in any case, and with a slip.
//
// A slip is a letter too many, too few, another one, or two that changed places; a name is near
// where one slip in three letters makes it of what was typed. Letters are those of ASCII.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

// How many slips lie between the two, without regard to case.
std::size_t slips(std::string_view a, std::string_view b);

// The place of `typed` among the names: as it is typed, else without regard to case.
std::optional<std::size_t> find_name(std::string_view typed, const std::vector<std::string>& names);

// ": did you mean 'plan'?", of the first of the nearest names; empty where none is near.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names);

}  // namespace ferry
