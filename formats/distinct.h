// Counts distinct texts and ranges in bounded memory, for the size of a stream log that
// `ferry check` reports (formats/stream_log.h). The count is exact below kMost; after that it is
// "at least kMost". Two different values count as one with a probability of 2^-64.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/hash.h"
#include "formats/stream_op.h"

namespace ferry {

class Distinct {
 public:
  static constexpr std::uint64_t kMost = 1u << 16;

  static std::uint64_t hash_of(std::string_view text) { return spread_bits(fnv1a(text)); }
  void see(std::string_view text) { see(hash_of(text)); }
  void see(const Range& range) { see(spread_bits(range.address) ^ spread_bits(~range.bytes)); }
  std::uint64_t count() const { return count_; }
  bool is_exact() const { return count_ < kMost; }

 private:
  void see(std::uint64_t hash) {
    if (count_ == kMost) return;
    if (count_ * 2 >= table_.size()) grow();
    hash += hash == 0;  // 0 marks a free place
    std::uint64_t& place = find(hash);
    count_ += place == 0;
    place = hash;
  }
  std::uint64_t& find(std::uint64_t hash) {
    const std::size_t mask = table_.size() - 1;
    std::size_t at = hash & mask;
    while (table_[at] != 0 && table_[at] != hash) at = (at + 1) & mask;
    return table_[at];
  }
  void grow() {
    std::vector<std::uint64_t> old(std::max<std::size_t>(table_.size() * 2, 16));
    std::swap(old, table_);
    for (const std::uint64_t hash : old) {
      if (hash != 0) find(hash) = hash;
    }
  }

  std::vector<std::uint64_t> table_;  // its size is a power of two
  std::uint64_t count_ = 0;
};

}  // namespace ferry
