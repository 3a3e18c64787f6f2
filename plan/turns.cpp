#include "plan/turns.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ferry::plan {
namespace {

// Ranges of bytes [begin, end): disjoint, in order.
using Extents = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::int64_t bytes_of(const Extents& extents) {
  std::int64_t bytes = 0;
  for (const auto& [begin, end] : extents) bytes += end - begin;
  return bytes;
}

void unite(Extents& extents, std::int64_t begin, std::int64_t end) {
  Extents united;
  for (const auto& each : extents) {
    if (each.second < begin || each.first > end) {
      united.push_back(each);
    } else {
      begin = std::min(begin, each.first);
      end = std::max(end, each.second);
    }
  }
  united.insert(std::lower_bound(united.begin(), united.end(), std::pair(begin, end)),
                {begin, end});
  extents = std::move(united);
}

}  // namespace

Turns::Turns(const KeepTrace& trace, const Hardware& hardware) : absences(trace.storages.size()) {
  schedule(trace, hardware.launch_ns);
  needed.assign(trace.kernels.size() + 1, 0);
  for (std::size_t i = 0; i < trace.storages.size(); ++i) add(trace, i);
  std::partial_sum(needed.begin(), needed.end(), needed.begin());
  for (std::int64_t& bytes : needed) bytes += trace.held_bytes;
}

// The device runs one kernel at a time, in order, each after its launch by the host.
void Turns::schedule(const KeepTrace& trace, sim::Time launch_ns) {
  sim::Time launched = 0;
  for (const TracedKernel& kernel : trace.kernels) {
    begins.push_back(std::max(compute_ns, launched));
    compute_ns = begins.back() + kernel.ns;
    launched += launch_ns;
  }
  rest.assign(trace.kernels.size(), 0);
  sim::Time after = 0;
  for (std::size_t i = trace.kernels.size(); i-- > 0;) rest[i] = after += trace.kernels[i].ns;
}

// Adds a storage. Every plan has it in memory from the kernel that makes it to the last kernel that
// uses it through a name in the code. After that only saved tensors refer to it, and it may be
// absent between its readers. What backward makes is never saved, so it is never absent.
void Turns::add(const KeepTrace& trace, std::size_t number) {
  const TracedStorage& storage = trace.storages[number];
  if (storage.maker == TracedStorage::kNobody) return;
  const bool saves = trace.kernels[storage.maker].forward;
  std::uint32_t last = storage.maker;
  for (const StorageUse& use : storage.uses) {
    if (!saves || trace.kernels[use.kernel].forward) last = std::max(last, use.kernel);
  }
  if (!saves && storage.gradient) last = static_cast<std::uint32_t>(trace.kernels.size()) - 1;
  needed[storage.maker] += storage.block_bytes;
  needed[last + 1] -= storage.block_bytes;
  if (saves) add_saved(storage, last + 1, absences[number]);
}

// Adds the absences of a saved storage after the kernel `from`. Goes from the last reader to the
// first: between two readers, all bytes that are read later may be absent; at a reader, those that
// it does not read itself.
void Turns::add_saved(const TracedStorage& storage, std::uint32_t from,
                      std::vector<Absence>& absent) {
  Extents later;
  std::uint32_t until = 0;  // `later` may be absent before this kernel
  const auto add = [&](std::uint32_t begin, std::uint32_t end, std::int64_t bytes) {
    if (begin < end && bytes != 0) absent.push_back({begin, end, bytes});
  };
  for (auto use = storage.uses.rbegin(); use != storage.uses.rend();) {
    const std::uint32_t kernel = use->kernel;
    if (kernel < from) break;
    add(kernel + 1, until, bytes_of(later));
    Extents here;
    for (; use != storage.uses.rend() && use->kernel == kernel; ++use) {
      unite(here, use->begin, use->end);
      unite(later, use->begin, use->end);
    }
    needed[kernel] += bytes_of(here);
    needed[kernel + 1] -= bytes_of(here);
    add(kernel, kernel + 1, bytes_of(later) - bytes_of(here));
    until = kernel;
  }
  add(from, until, bytes_of(later));
}

}  // namespace ferry::plan
