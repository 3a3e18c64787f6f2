// Hashes of texts and numbers. They are the same on every machine and in every run, so digests,
// tags and random numbers can use them. They protect against mistakes, not against attacks.
//
// sim/choices has its own mixer (sim/choices/hash.h), because it uses only the standard library.
#pragma once

#include <cstdint>
#include <string_view>

namespace ferry {

// FNV-1a (Fowler, Noll, Vo).
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The last steps of SplitMix64 (Steele, Lea, Flood 2014). It is a bijection in which each bit of x
// affects every bit of the result. 0 stays 0, so a generator adds its stride first.
constexpr std::uint64_t spread_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace ferry
