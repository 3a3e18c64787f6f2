// Hash functions for numbers. Their results are the same on every machine, so reports and digests
// that depend on them are too. formats/hash.h has those for texts; this file uses only the standard
// library, as all of sim/choices does.
#pragma once

#include <cstdint>

namespace ferry::choices {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of x affects every bit of the
// result.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Adds x to the hash. The order of additions matters.
constexpr std::uint64_t combine(std::uint64_t hash, std::uint64_t x) {
  return mix_bits(hash ^ mix_bits(x));
}

}  // namespace ferry::choices
