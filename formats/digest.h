// FNV-1a of some bytes, as 16 hexadecimal digits: it tells whether an input is the one that a
// result was made of. It guards against mistakes, not against people.
#pragma once

#include <string>
#include <string_view>

namespace ferry {

std::string digest_of(std::string_view bytes);

}  // namespace ferry
