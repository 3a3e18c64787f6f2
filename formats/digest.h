// The FNV-1a hash of some bytes, as 16 hexadecimal digits. It shows if an input is the one that a
// result was made from: plans name their program by it, and `ferry sweep` the files that it read.
// It protects against mistakes, not against attacks.
#pragma once

#include <string>
#include <string_view>

namespace ferry {

std::string digest_of(std::string_view bytes);

}  // namespace ferry
