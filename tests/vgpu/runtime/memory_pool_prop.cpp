#include "vgpu/runtime/memory_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace ferry::vgpu {
namespace {

constexpr std::size_t kUnit = MemoryPool::kAlignment;
constexpr std::size_t kSegment = 16 * kUnit;
constexpr std::uint32_t kStreams = 3;

int below(int end) { return *rc::gen::resize(100, rc::gen::inRange(0, end)); }

// Against the owner of each 512 bytes: nobody, a block, or the stream that it was freed on.
struct Unit {
  bool is_free = true;
  int freed_on = -1;
};
using Units = std::map<std::uintptr_t, Unit>;

// The runs of units that the stream may have, each within a segment: the lengths.
std::size_t longest_free(const Units& units, int stream) {
  std::size_t most = 0;
  std::size_t run = 0;
  int owner = -2;
  for (const auto& [address, unit] : units) {
    const bool begins = address % kSegment == 0 || unit.freed_on != owner;
    if (begins) run = 0;
    owner = unit.freed_on;
    const bool may = unit.is_free && (unit.freed_on == stream || unit.freed_on == -1);
    run = may ? run + 1 : 0;
    most = std::max(most, run);
  }
  return most;
}

RC_GTEST_PROP(MemoryPoolProp, AStreamGetsWhatItMayHaveAndNothingElse, ()) {
  MemoryPool pool;
  Units units;
  std::map<std::uintptr_t, std::size_t> blocks;
  std::uint64_t used = 0;
  std::uint64_t most = 0;
  const auto segments = static_cast<std::uintptr_t>(1 + below(3));
  for (std::uintptr_t segment = 1; segment <= segments; ++segment) {
    pool.add_segment(segment * kSegment, kSegment);
    for (std::size_t at = 0; at < kSegment; at += kUnit) units[segment * kSegment + at] = {};
  }
  for (int step = below(60); step >= 0; --step) {
    const int stream = below(kStreams);
    const StreamId id{static_cast<std::uint32_t>(stream)};
    const int what = below(10);
    if (what == 0) {
      std::set<StreamId> owners;
      for (auto& [address, unit] : units) {
        if (!unit.is_free) continue;
        const int owner = std::exchange(unit.freed_on, stream);
        if (owner >= 0 && owner != stream) {
          owners.insert(StreamId{static_cast<std::uint32_t>(owner)});
        }
      }
      RC_ASSERT(pool.give_all_to(id) == owners);
      RC_TAG("given");
    } else if (what < 6) {
      const auto bytes = static_cast<std::size_t>(1 + below(6 * static_cast<int>(kUnit)));
      const auto address = pool.allocate(bytes, id);
      const std::size_t count = MemoryPool::rounded(bytes) / kUnit;
      RC_ASSERT(address.has_value() == (count <= longest_free(units, stream)));
      if (!address) continue;
      for (std::size_t i = 0; i < count; ++i) {
        Unit& unit = units.at(*address + i * kUnit);
        RC_ASSERT(unit.is_free);
        RC_ASSERT(unit.freed_on == -1 || unit.freed_on == stream);
        unit = {false, -1};
      }
      blocks[*address] = count;
      used += count * kUnit;
    } else if (!blocks.empty()) {
      const auto block = std::next(blocks.begin(), below(static_cast<int>(blocks.size())));
      RC_ASSERT(pool.free(block->first, id) == block->second * kUnit);
      RC_ASSERT(!pool.free(block->first, id));
      for (std::size_t i = 0; i < block->second; ++i) {
        units.at(block->first + i * kUnit) = {true, stream};
      }
      used -= block->second * kUnit;
      blocks.erase(block);
    }
    most = std::max(most, used);
    RC_ASSERT(pool.used().now == used);
    RC_ASSERT(pool.used().most == most);
  }
  RC_ASSERT(pool.reserved().now == segments * kSegment);
  std::set<std::uintptr_t> empty;
  for (std::uintptr_t segment = 1; segment <= segments; ++segment) {
    const auto block = blocks.lower_bound(segment * kSegment);
    if (block == blocks.end() || block->first >= (segment + 1) * kSegment) {
      empty.insert(segment * kSegment);
    }
  }
  const std::vector<std::uintptr_t> taken = pool.take_free_segments(0);
  RC_ASSERT(std::set<std::uintptr_t>(taken.begin(), taken.end()) == empty);
}

}  // namespace
}  // namespace ferry::vgpu
