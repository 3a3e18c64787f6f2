#include "vgpu/triton/rebased.h"

#include <algorithm>

namespace ferry::vgpu::triton {
namespace {

constexpr int kApart = 44;  // the logarithm of the bytes between two places: 16 TiB

std::uint64_t begin_of(std::size_t place) { return (std::uint64_t{place} + 1) << kApart; }

}  // namespace

Rebased::Rebased(const Kernel& kernel, const Launch& real) : launch_(real) {
  const std::vector<Range> unplaced = launch_.memory;
  const auto place_storage = [&](const Range& storage) {
    std::size_t place = 0;
    while (place < storages_.size() && storages_[place].address != storage.address) ++place;
    if (place == storages_.size()) storages_.push_back(storage);
    return place;
  };
  for (std::size_t i = 0; i < launch_.arguments.size(); ++i) {
    std::uint64_t& argument = launch_.arguments[i];
    if (kernel.entry->types[kernel.entry->arguments[i]].elem != Elem::kPointer) continue;
    const auto holds = [&](const Range& storage) {
      return argument >= storage.address && argument < storage.end();
    };
    const auto storage = std::ranges::find_if(unplaced, holds);
    if (storage == unplaced.end()) continue;
    argument = begin_of(place_storage(*storage)) + (argument - storage->address);
  }
  for (const Range& storage : unplaced) place_storage(storage);
  launch_.memory.clear();
  for (std::size_t i = 0; i < storages_.size(); ++i) {
    launch_.memory.push_back({begin_of(i), storages_[i].bytes});
  }
}

std::vector<Range> Rebased::real(std::vector<Range> ranges) const {
  for (Range& range : ranges) {
    const std::size_t place = (range.address >> kApart) - 1;
    range.address += storages_[place].address - begin_of(place);
  }
  std::ranges::sort(ranges, {}, &Range::address);
  return ranges;
}

}  // namespace ferry::vgpu::triton
