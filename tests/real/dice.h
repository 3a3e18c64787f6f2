// What a trial draws from its number. No distribution of the standard library's: those differ from
// one library to the next.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace ferry::real {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace ferry::real
