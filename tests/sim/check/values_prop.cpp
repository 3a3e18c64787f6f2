// Symbolic contents against an array of bytes, each a pair (write, offset): two ranges have equal
// hashes where, and only where, their bytes are equal.
#include "sim/check/values.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace ferry::check {
namespace {

constexpr std::uint64_t kBytes = 32;
using Byte = std::pair<std::uint64_t, std::uint64_t>;  // {0, 0}: undefined
using Draw = std::array<std::uint32_t, 4>;

class Model {
 public:
  std::vector<Byte> read(Range range) const {
    const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(range.address);
    return {from, from + static_cast<std::ptrdiff_t>(range.bytes)};
  }
  void write(Range range, std::uint64_t value) {
    for (std::uint64_t i = 0; i < range.bytes; ++i) bytes_[range.address + i] = {value, i};
  }
  void clear(Range range) {
    for (std::uint64_t i = 0; i < range.bytes; ++i) bytes_[range.address + i] = {};
  }
  void copy(Range from, Range to) {
    std::vector<Byte> moved = read(from);
    moved.resize(to.bytes);
    std::copy(moved.begin(), moved.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(to.address));
  }
  // The same kernel on the same inputs makes the same value.
  void kernel(std::uint64_t tag, const std::vector<Range>& reads, Range range) {
    std::vector<std::vector<Byte>> inputs{{{tag, 0}}};
    for (const Range& r : reads) inputs.push_back(read(r));
    write(range, made_.try_emplace(inputs, 1000 + made_.size()).first->second);
  }

 private:
  std::vector<Byte> bytes_ = std::vector<Byte>(kBytes);
  std::map<std::vector<std::vector<Byte>>, std::uint64_t> made_;
};

Range range_of(std::uint32_t draw) {
  const std::uint64_t address = draw % kBytes;
  return {address, std::min<std::uint64_t>(kBytes - address, draw / kBytes % 9)};
}

void apply(const Draw& draw, Values& values, Model& model) {
  const std::vector<Range> reads{range_of(draw[1]), range_of(draw[2])};
  const Range to = range_of(draw[3]);
  StreamOp op;
  op.range = to;
  op.reads = reads;
  op.writes = {&to, 1};
  op.tag = draw[0] / 8 % 2;
  switch (draw[0] % 8) {
    case 0:
      op.kind = StreamOpKind::kAlloc;
      model.clear(to);
      break;
    case 1: {
      const std::uint64_t value = 1 + draw[1] % 3;
      model.write(to, value);
      return values.write(to, value);
    }
    case 2:
    case 3:
      op.kind = StreamOpKind::kKernel;
      model.kernel(op.tag, reads, to);
      break;
    default:
      op.kind = StreamOpKind::kCopy;
      model.copy(reads[0], to);
  }
  values(op);
}

TEST(ValuesProp, HashesAreEqualWhereBytesAre) {
  EXPECT_TRUE(rc::check("read() tells apart what differs, and nothing else", [] {
    const auto draws =
        *rc::gen::resize(100, rc::gen::container<std::vector<Draw>>(rc::gen::arbitrary<Draw>()));
    Values values;
    Model model;
    for (const Draw& draw : draws) apply(draw, values, model);
    std::map<std::vector<Byte>, std::uint64_t> hash_of;
    std::map<std::uint64_t, std::vector<Byte>> bytes_of;
    for (std::uint64_t begin = 0; begin < kBytes; ++begin) {
      for (std::uint64_t bytes = 0; bytes <= kBytes - begin; ++bytes) {
        const Range range{begin, bytes};
        const std::vector<Byte> contents = model.read(range);
        const std::uint64_t hash = values.read(range);
        RC_ASSERT(hash_of.try_emplace(contents, hash).first->second == hash);
        RC_ASSERT(bytes_of.try_emplace(hash, contents).first->second == contents);
      }
    }
  }));
}

}  // namespace
}  // namespace ferry::check
