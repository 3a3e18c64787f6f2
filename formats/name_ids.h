// Maps texts to small numbers and back. The number of an erased text is used again, so a long log
// that always makes new events needs only as many numbers as there are events at a time.
//
// It is an open-addressing hash table of (hash, number) with linear probing, at most half full: a
// look-up costs a hash, one cache line and one comparison. Numbers are given in the order of first
// use, so equal inputs give equal numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

class NameIds {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  NameIds() : table_(16) {}

  std::uint32_t find(std::string_view text) const { return table_[seek(text, hash(text))].id; }
  std::uint32_t intern(std::string_view text) {
    const std::uint32_t h = hash(text);
    const std::size_t at = seek(text, h);
    return table_[at].id != kNone ? table_[at].id : add(text, h, at);
  }
  void erase(std::uint32_t id);
  // Valid until the next intern() or erase().
  const std::string& text(std::uint32_t id) const { return texts_[id]; }
  std::size_t size() const { return count_; }
  // Calls f with every id, in an order that depends only on the texts and on the calls so far.
  template <class F>
  void each(F&& f) const {
    for (const Slot& slot : table_) {
      if (slot.id != kNone) f(slot.id);
    }
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = kNone;
  };

  static std::uint32_t hash(std::string_view text) {
    std::uint64_t h = text.size() * 0x9e3779b97f4a7c15ull;
    const auto mix = [&](std::uint64_t word) {
      h = (h ^ word) * 0xbf58476d1ce4e5b9ull;
      h ^= h >> 29;
    };
    for (; text.size() >= 8; text.remove_prefix(8)) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), 8);
      mix(word);
    }
    std::uint64_t rest = 0;
    if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
    mix(rest);
    return static_cast<std::uint32_t>(h >> 32);
  }
  // Returns the index of the text in the table, or of the free slot where it belongs.
  std::size_t seek(std::string_view text, std::uint32_t h) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t at = h & mask;
    while (table_[at].id != kNone && (table_[at].hash != h || texts_[table_[at].id] != text)) {
      at = (at + 1) & mask;
    }
    return at;
  }
  std::uint32_t add(std::string_view text, std::uint32_t h, std::size_t at);
  void grow();

  std::vector<Slot> table_;  // its size is a power of two
  std::vector<std::string> texts_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace ferry
