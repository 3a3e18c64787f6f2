// The map against an array of bytes. Each byte holds (value, distance from the start of its write),
// so the shift of cut values is judged, too.
#include "sim/check/interval_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry::check {
namespace {

struct Shift {
  void operator()(std::uint64_t& value, std::uint64_t distance) const { value += distance; }
};
using Map = IntervalMap<std::uint64_t, Shift, 4>;  // small leaves: they split and vanish often
using Bytes = std::vector<std::optional<std::uint64_t>>;

Bytes bytes_of(const Map& map, std::size_t size) {
  Bytes bytes(size);
  std::uint64_t known = 0;
  map.visit(0, size, [&](std::uint64_t begin, std::uint64_t end, std::uint64_t value) {
    RC_ASSERT(begin >= known);
    RC_ASSERT(begin < end);
    known = end;
    for (std::uint64_t at = begin; at < end; ++at) bytes[at] = value + (at - begin);
  });
  return bytes;
}

// One operation on both; the value of a write has its number in the high half.
void apply(std::uint32_t what, std::uint64_t begin, std::uint64_t end, std::uint64_t value,
           Map& map, Bytes& model) {
  const auto set_all = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to; ++at) model[at] = value + (at - from);
  };
  const auto assign = [&](std::uint64_t, std::uint64_t, std::uint64_t& v) { v = value; };
  switch (what) {
    case 0:
      map.replace(begin, end, value);
      return set_all(begin, end);
    case 1:
      map.erase(begin, end);
      for (std::uint64_t at = begin; at < end; ++at) model[at].reset();
      return;
    case 2:  // every piece starts anew: the model has to know the pieces, so they are replaced
      map.update(begin, end, assign);
      map.visit(begin, end, [&](std::uint64_t from, std::uint64_t to, std::uint64_t) {
        RC_ASSERT(from >= begin && to <= end);
        set_all(from, to);
      });
      return;
    case 3:
      map.modify(begin, end, [&](std::uint64_t from, std::uint64_t to, std::uint64_t& v) {
        RC_ASSERT(from >= begin && to <= end);
        RC_ASSERT(model[from] == std::optional(v));
        v += 1000;
        for (std::uint64_t at = from; at < to; ++at) *model[at] += 1000;
      });
      return;
    default:
      if (begin == end) return;
      map.merge(begin, end, [&](std::uint64_t from, std::uint64_t to, std::uint64_t v) {
        RC_ASSERT(from >= begin && to <= end);
        RC_ASSERT(model[from] == std::optional(v));
      }) = value;
      return set_all(begin, end);
  }
}

TEST(IntervalMapProp, IsAnArrayOfBytes) {
  EXPECT_TRUE(rc::check("every operation does to each byte what it says", [] {
    const std::size_t size = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(1, 600));
    const auto steps =
        *rc::gen::resize(400, rc::gen::container<std::vector<std::array<std::uint32_t, 3>>>(
                                  rc::gen::arbitrary<std::array<std::uint32_t, 3>>()));
    Map map;
    Bytes model(size);
    std::uint64_t number = 0;
    for (const auto& [what, a, b] : steps) {
      const std::uint64_t begin = a % size;
      const std::uint64_t end = begin + b % std::min<std::uint64_t>(size - begin + 1, 24);
      apply(what % 5, begin, end, ++number << 32, map, model);
      if (number % 16 == 0) RC_ASSERT(bytes_of(map, size) == model);
    }
    RC_ASSERT(bytes_of(map, size) == model);
    for (std::uint64_t at = 0; at < size; ++at) {
      RC_ASSERT((map.find(at) != nullptr) == model[at].has_value());
    }
  }));
}

}  // namespace
}  // namespace ferry::check
