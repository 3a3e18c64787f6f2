#include "vgpu/triton/launch.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "vgpu/triton/machine.h"

namespace ferry::vgpu::triton {
namespace {

// Adds the storages that the arguments at these positions point into.
void add_storages(const Launch& launch, const std::vector<std::size_t>& positions, Memory& memory,
                  Bytes& to) {
  for (const std::size_t position : positions) {
    const std::uint64_t address = launch.arguments[position];
    const Range* const storage = memory.before(address);
    if (storage != nullptr && address < storage->end()) to.add(storage->address, storage->bytes);
  }
}

void check(const Kernel& kernel, const Launch& launch) {
  if (launch.arguments.size() == kernel.entry->arguments.size()) return;
  throw std::runtime_error(
      "kernel " + kernel.name + " has " + std::to_string(kernel.entry->arguments.size()) +
      " arguments, and the launch gives " + std::to_string(launch.arguments.size()));
}

}  // namespace

Accesses find_accesses(const Kernel& kernel, const Launch& launch) {
  check(kernel, launch);
  Machine machine(kernel, launch, Machine::Runs::kSlice);
  machine.run();
  Memory& memory = machine.memory();
  add_storages(launch, kernel.may_read, memory, memory.reads);
  add_storages(launch, kernel.may_write, memory, memory.writes);
  return {.reads = memory.reads.ranges(),
          .writes = memory.writes.ranges(),
          .flops = machine.flops(),
          .is_exact = kernel.may_read.empty() && kernel.may_write.empty()};
}

std::vector<Range> bounded(std::vector<Range> ranges, const std::vector<Range>& memory,
                           std::size_t most) {
  if (ranges.size() <= most) return ranges;
  std::vector<std::pair<std::uint64_t, std::size_t>> gaps;  // before which range
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const std::uint64_t begin = ranges[i - 1].end();
    const bool crosses = std::any_of(memory.begin(), memory.end(), [&](const Range& storage) {
      return storage.address >= begin && storage.address <= ranges[i].address;
    });
    if (!crosses) gaps.emplace_back(ranges[i].address - begin, i);
  }
  std::sort(gaps.begin(), gaps.end());
  gaps.resize(std::min(gaps.size(), ranges.size() - most));
  std::vector<bool> joins(ranges.size());
  for (const auto& [bytes, before] : gaps) joins[before] = true;
  std::vector<Range> made;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (joins[i]) {
      made.back().bytes = ranges[i].end() - made.back().address;
    } else {
      made.push_back(ranges[i]);
    }
  }
  return made;
}

void run(const Kernel& kernel, const Launch& launch) {
  check(kernel, launch);
  Machine(kernel, launch, Machine::Runs::kAll).run();
}

}  // namespace ferry::vgpu::triton
