// The program's own random integers: SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom
// Number Generators", 2014). A stream is identified by its seed and a number, so what a step reads
// does not depend on earlier numbers: a resumed training reads the same data as an uninterrupted
// one.
//
// The numbers are the same on every machine and with every standard library. LibTorch's own
// generators are used for the initial weights and dropout.
#pragma once

#include <cstdint>

#include "formats/hash.h"

namespace ferry::real::train {

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(spread_bits(seed) ^ spread_bits(~stream)) {}

  std::uint64_t next() { return spread_bits(state_ += kStride); }

  // Returns 0 to n - 1. n is at least 1 and far below 2^32, so the bias is negligible.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>((next() >> 32) * static_cast<std::uint64_t>(n) >> 32);
  }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + below(most - least + 1);
  }

 private:
  static constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15U;
  std::uint64_t state_;
};

}  // namespace ferry::real::train
