// Implements values.h: hashes what each op reads into the values that it writes, and moves contents
// with copies.
#include "sim/check/values.h"

#include <algorithm>

#include "sim/choices/hash.h"

namespace ferry::check {
namespace {

// The lowest bit of a value marks a sum.
constexpr std::uint64_t kIsSum = 1;
constexpr std::uint64_t kReadSeed = 0x66657272795f7264ull;
constexpr std::uint64_t kKernelSeed = 0x66657272795f6b6eull;

}  // namespace

void Values::operator()(const StreamOp& op) {
  switch (op.kind) {
    case StreamOpKind::kAlloc:
      contents_.replace(op.range.address, op.range.end(), Content{});
      break;
    case StreamOpKind::kCopy:
      if (!op.reads.empty() && !op.writes.empty()) copy(op.reads[0], op.writes[0]);
      break;
    case StreamOpKind::kKernel:
    case StreamOpKind::kMemset:
    case StreamOpKind::kHostFunc:
    case StreamOpKind::kHostWrite: {
      if (op.tag == kSumTag) {
        std::uint64_t sum = 0;
        for (const Range& range : op.reads) sum += summand(range);
        for (const Range& range : op.writes) write_as_it_is(range, sum | kIsSum);
        break;
      }
      std::uint64_t inputs = choices::combine(kKernelSeed, op.tag);
      for (const Range& range : op.reads) inputs = choices::combine(inputs, read(range));
      for (std::size_t i = 0; i < op.writes.size(); ++i)
        write(op.writes[i], choices::combine(inputs, i));
      if (op.kind == StreamOpKind::kHostWrite)
        write(op.range, choices::combine(inputs, op.writes.size()));
      break;
    }
    default:
      break;
  }
}

void Values::write(Range range, std::uint64_t value) {
  value <<= 1;
  write_as_it_is(range, value == 0 ? 2 : value);
}

void Values::write_as_it_is(Range range, std::uint64_t value) {
  contents_.replace(range.address, range.end(), Content{value, 0});
}

// Returns what the range adds to a sum, an even number. A range that is a sum itself adds its
// summands.
std::uint64_t Values::summand(Range range) const {
  const std::span<const Stretch> cut = runs(range);
  if (cut.size() == 1 && cut[0].content.offset == 0) {
    const std::uint64_t value = cut[0].content.value;
    if ((value & kIsSum) != 0) return value & ~kIsSum;
  }
  return choices::mix_bits(hash_of(range, cut)) & ~kIsSum;
}

std::uint64_t Values::read(Range range) const { return hash_of(range, runs(range)); }

std::uint64_t Values::hash_of(Range range, std::span<const Stretch> runs) {
  std::uint64_t hash = choices::combine(kReadSeed, range.bytes);
  for (const Stretch& run : runs) {
    hash = choices::combine(hash, run.bytes);
    hash = choices::combine(hash, run.content.value);
    hash = choices::combine(hash, run.content.offset);
  }
  return hash;
}

std::uint64_t Values::gathered(std::uint64_t contents, std::uint64_t bytes) {
  Values one;
  const Range range{0, bytes};
  const std::uint64_t inputs =
      choices::combine(choices::combine(kKernelSeed, kGatherTag), contents);
  one.write(range, choices::combine(inputs, 0));
  return one.read(range);
}

// Returns the longest stretches of the range that are consecutive bytes of one write. The same
// bytes have the same runs, however the map cuts them. Valid until the next call. Most ranges are
// one piece.
std::span<const Values::Stretch> Values::runs(Range range) const {
  std::uint64_t begin = 0;
  const Content* const one = contents_.covering(range.address, range.end(), begin);
  if (one && range.bytes > 0) {
    scratch_.assign(1, {0, range.bytes, *one});
    Shift{}(scratch_[0].content, range.address - begin);
    return scratch_;
  }
  cut_into_runs(range, scratch_);
  return scratch_;
}

void Values::cut_into_runs(Range range, std::vector<Stretch>& into) const {
  into.clear();
  const auto add = [&](std::uint64_t begin, std::uint64_t end, Content content) {
    if (begin >= end) return;
    if (!into.empty()) {
      Stretch& last = into.back();
      Content next = last.content;
      Shift{}(next, last.bytes);
      if (next.value == content.value && next.offset == content.offset) {
        last.bytes += end - begin;
        return;
      }
    }
    into.push_back({begin - range.address, end - begin, content});
  };
  std::uint64_t known = range.address;
  contents_.visit(range.address, range.end(),
                  [&](std::uint64_t begin, std::uint64_t end, Content content) {
                    if (begin < known) Shift{}(content, known - begin);
                    add(known, begin, Content{});
                    add(std::max(begin, known), std::min(end, range.end()), content);
                    known = end;
                  });
  add(known, range.end(), Content{});
}

void Values::copy(Range from, Range to) {
  const std::span<const Stretch> cut = runs({from.address, std::min(from.bytes, to.bytes)});
  if (cut.size() != 1 || cut[0].bytes != to.bytes) {
    contents_.replace(to.address, to.end(), Content{});
  }
  for (const Stretch& run : cut) {
    const std::uint64_t begin = to.address + run.at;
    contents_.replace(begin, begin + run.bytes, run.content);
  }
}

}  // namespace ferry::check
