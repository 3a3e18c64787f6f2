#include "plan/recompute_cuts.h"

#include <algorithm>
#include <limits>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Prices are integers, in parts of the link's price. Larger: finer prices.
constexpr std::int64_t kParts = std::int64_t{1} << 20;
// Bound on the prices that are tried for one kernel. Larger: the bound may be higher, and takes
// longer.
constexpr int kPrices = 16;
constexpr std::uint32_t kNone = ~std::uint32_t{0};  // no node yet

std::int64_t absent_at(const std::vector<Absence>& absences, std::uint32_t turn) {
  std::int64_t bytes = 0;
  for (const Absence& each : absences) {
    if (each.begin <= turn && turn < each.end) bytes += each.bytes;
  }
  return bytes;
}

}  // namespace

RecomputeInputs::RecomputeInputs(const KeepTrace& trace, const Turns& turns)
    : reads_(trace.kernels.size()) {
  for (const TracedKernel& kernel : trace.kernels) ns_.push_back(kernel.ns);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const TracedStorage& storage = trace.storages[s];
    if (storage.maker == TracedStorage::kNobody || !trace.kernels[storage.maker].forward) continue;
    const auto here = static_cast<std::uint32_t>(made_.size());
    Made made{.maker = storage.maker,
              .named = storage.maker,
              .least_read = std::numeric_limits<std::int64_t>::max(),
              .later = {},
              .absences = turns.absences[s]};
    for (const StorageUse& use : storage.uses) {
      if (!trace.kernels[use.kernel].forward) {
        made.later.push_back(use.kernel);
        continue;
      }
      made.named = std::max(made.named, use.kernel);
      if (use.kernel == storage.maker || !use.reads) continue;
      std::vector<std::uint32_t>& reads = reads_[use.kernel];
      if (reads.empty() || reads.back() != here) reads.push_back(here);
      made.least_read = std::min(made.least_read, use.end - use.begin);
    }
    made_.push_back(std::move(made));
  }
}

RecomputeCut::RecomputeCut(const RecomputeInputs& inputs, std::uint32_t turn,
                           std::int64_t link_bytes_per_us)
    : link_bytes_per_us_(link_bytes_per_us) {
  const std::vector<RecomputeInputs::Made>& made = inputs.made();
  std::vector<std::uint32_t> storages(made.size(), kNone), ops(turn + 1, kNone), open;
  for (std::uint32_t s = 0; s < made.size(); ++s) {
    if (absent_at(made[s].absences, turn) == 0) continue;
    storages[s] = MinCut::kSource;
    open.push_back(s);
  }
  while (!open.empty()) {
    const std::uint32_t s = open.back();
    open.pop_back();
    const std::uint32_t maker = made[s].maker;
    const bool fresh = ops[maker] == kNone;
    if (fresh) {
      ops[maker] = graph_.add_node();
      add(ops[maker], MinCut::kSink, 0, inputs.ns(maker));
    }
    const std::int64_t absent = absent_at(made[s].absences, turn);
    add(storages[s], ops[maker], absent > 0 ? absent : made[s].least_read, 0);
    if (!fresh) continue;
    for (const std::uint32_t read : inputs.reads(maker)) {
      const bool used = turn <= made[read].named || std::ranges::count(made[read].later, turn) > 0;
      if (used || storages[read] == MinCut::kSource) continue;  // in memory, or already needed
      if (storages[read] == kNone) {
        storages[read] = graph_.add_node();
        open.push_back(read);
      }
      graph_.set(graph_.add_edge(ops[maker], storages[read]), MinCut::kUnlimited);
    }
  }
}

void RecomputeCut::add(std::uint32_t from, std::uint32_t to, std::int64_t bytes, sim::Time ns) {
  edges_.push_back({graph_.add_edge(from, to), from, to, bytes, ns});
}

// Computes the cut at a price. A byte costs price / kParts * 1000 / rate ns.
RecomputeCut::Cut RecomputeCut::at(std::int64_t price) {
  for (const Edge& edge : edges_) {
    graph_.set(edge.number, MinCut::Capacity{edge.bytes} * price * 1000 +
                                MinCut::Capacity{edge.ns} * link_bytes_per_us_ * kParts);
  }
  Cut cut{.value = graph_.value()};
  for (const Edge& edge : edges_) {
    if (!graph_.is_before(edge.from) || graph_.is_before(edge.to)) continue;
    cut.bytes += edge.bytes;
    cut.ns += edge.ns;
  }
  return cut;
}

// The value of the cut is a concave function of the price, and each cut found is a line above it.
// If a cut has more bytes than the room, the best price is higher; if it has fewer, lower. The next
// price to try is where the lines of both sides meet.
sim::Time RecomputeCut::least_ns(std::int64_t room) {
  Wide most = 0;
  const auto take = [&](std::int64_t price, const Cut& cut) {
    most = std::max(most, Wide{cut.value} - Wide{price} * 1000 * room);
  };
  Cut low = at(0), high = at(kParts);
  take(kParts, high);
  for (int i = 0; i < kPrices && low.bytes > room && high.bytes < room; ++i) {
    const Wide meet = Wide{high.ns - low.ns} * link_bytes_per_us_ * kParts /
                      (Wide{low.bytes - high.bytes} * 1000);
    const auto price = static_cast<std::int64_t>(std::clamp<Wide>(meet, 0, kParts));
    const Cut middle = at(price);
    take(price, middle);
    if (middle.bytes == room || middle.bytes >= low.bytes || middle.bytes <= high.bytes) break;
    (middle.bytes > room ? low : high) = middle;
  }
  return static_cast<sim::Time>(most / (Wide{link_bytes_per_us_} * kParts));
}

}  // namespace ferry::plan
