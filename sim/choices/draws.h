// Random numbers for random programs, tests and strategies. Each number depends only on the seed,
// on the number of the program and on its position in the sequence. So any program can be made
// again, in any order, on any machine. The standard library's distributions do not promise that.
#pragma once

#include <cstdint>

#include "sim/choices/hash.h"

namespace ferry::choices {

class Draws {
 public:
  explicit Draws(std::uint64_t seed, std::uint64_t number = 0)
      : key_(mix_bits(mix_bits(seed) + number)) {}

  std::uint64_t bits() { return mix_bits(key_ + at_++ * 0x9e3779b97f4a7c15ull); }

  // Returns a random number in [first, end), which must not be empty and must be shorter than 2^32.
  int in(int first, int end) {
    const auto width = static_cast<std::uint64_t>(static_cast<std::int64_t>(end) - first);
    return first + static_cast<int>(((bits() >> 32) * width) >> 32);
  }
  bool one_in(int n) { return in(0, n) == 0; }
  // Returns a random number in [0, n), or 0 if that number is not below `end`. So with a small
  // `end` most results are 0.
  int few(int n, int end) {
    const int drawn = in(0, n);
    return drawn < end ? drawn : 0;
  }

 private:
  std::uint64_t key_;
  std::uint64_t at_ = 0;
};

}  // namespace ferry::choices
