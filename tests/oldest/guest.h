// What a module does for the program that loads it, with what it has of the C++ library.
#pragma once
#include <string>

namespace ferry::oldest {

// Throws the exception of this number.
using Thrower = void (*)(int);
constexpr int thrown_kinds = 5;

}  // namespace ferry::oldest

extern "C" {
// Catches what the program throws, each by its type, and says what it was.
void guest_catches(ferry::oldest::Thrower thrower, std::string& said);
// What is newer in libstdc++ than the oldest system, and what is of glibc.
void guest_uses(std::string& said);
void guest_throws();
}
