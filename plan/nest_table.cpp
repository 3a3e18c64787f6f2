#include "plan/nest_table.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "formats/parallel.h"

namespace ferry::plan {
namespace {

// Bound on the number of blocks. Larger: finer spans; time grows with its third power.
constexpr std::size_t kBlocks = 128;
// Bound on the number of slots in which memory is counted. Larger: less rounding, more time.
constexpr std::int64_t kSlotsMost = 2'000;
// Bound on the steps of the inner loops: with many blocks there are fewer slots. Larger: less
// rounding for many blocks, more time.
constexpr std::int64_t kWork = 600'000'000;
// Bound on the time of all operators together, run once, in units of the table. Larger: finer
// times; sums of repeated recomputes must stay below NestTable::kNever.
constexpr sim::Time kUnits = 4'000'000;

// Returns the slot size at which rounding errors of all storages are smallest, so that sums are
// right. It tries the divisors (1, 2, 3, ...) of the largest storage that give at most `slots`
// slots. Ties go to the largest slot.
std::int64_t slot_of(const SpanModel& model, std::int64_t bytes, std::int64_t slots) {
  std::int64_t largest = 0;
  for (const ModelStorage& storage : model.storages) largest = std::max(largest, storage.bytes);
  const std::int64_t smallest = bytes / slots + 1;
  std::int64_t best = smallest, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t parts = 1; largest / parts >= smallest; ++parts) {
    const std::int64_t slot = largest / parts;
    std::int64_t off = 0;
    for (const ModelStorage& storage : model.storages) {
      const std::int64_t over = storage.bytes % slot;
      off += std::min(over, slot - over);
    }
    if (off >= least) continue;
    least = off;
    best = slot;
  }
  return best;
}

}  // namespace

NestTable::NestTable(const SpanChoices& choices)
    : choices_(choices), blocks_(choices.model(), kBlocks) {
  const std::size_t all = blocks_.blocks();
  const std::int64_t bytes = choices.slot_bytes() * choices.slots();
  const auto steps = static_cast<std::int64_t>(all * all * all / 3 + 1);
  slot_bytes_ = slot_of(choices.model(), bytes, std::min(kSlotsMost, kWork / steps));
  width_ = static_cast<std::size_t>(bytes / slot_bytes_) + 1;
  sim::Time ns = 0;
  for (std::size_t op = 0; op < choices.operators(); ++op) ns += choices.ns(op);
  unit_ns_ = ns / kUnits + 1;
  saved_sums_ = {0};
  for (std::size_t i = 0; i < all; ++i) {
    saved_sums_.push_back(saved_sums_.back() + blocks_.saved(i));
  }
  for (const bool held : {false, true}) {
    std::vector<std::int64_t>& sums = direct_sums_[held ? 1 : 0];
    sums.assign((all + 1) * (all + 1), 0);
    for (std::size_t end = 1; end <= all; ++end) {
      for (std::size_t i = 0; i < end; ++i) {
        std::int64_t* const here = &sums[end * (all + 1) + i];
        here[1] = here[0] + blocks_.direct(i, end, held).bytes;
      }
    }
  }
  sweeps_.resize(2 * (all + 1) * (all + 1));
  // A sweep needs the results of shorter sweeps only.
  for (std::size_t length = 0; length <= all; ++length) {
    in_parallel(2 * (all - length + 1), [&](std::size_t i) {
      fill({i / 2, i / 2 + length, i % 2 == 1});
    });
  }
  fill_least();
}

std::size_t NestTable::own(std::int32_t slots) const {
  const std::int64_t bytes = choices_.slot_bytes() * slots;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(bytes / slot_bytes_, 0, static_cast<std::int64_t>(width_) - 1));
}

// Rounds to the nearest slot. This may be too few, but the simulator judges each plan anyway.
std::int32_t NestTable::slots(std::int64_t bytes) const {
  const std::int64_t slots = (bytes + slot_bytes_ / 2) / slot_bytes_;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(slots, 0, static_cast<std::int64_t>(width_)));
}

std::size_t NestTable::number(const Sweep& of) const {
  return ((of.held ? 1 : 0) * (blocks_.blocks() + 1) + of.begin) * (blocks_.blocks() + 1) + of.end;
}

const NestTable::Row& NestTable::sweep(const Sweep& of) const { return sweeps_[number(of)]; }

NestTable::Step NestTable::direct(const Sweep& of) const {
  const NestBlocks::Direct& block = blocks_.direct(of.begin, of.end, of.held);
  const std::int64_t* const sums =
      &direct_sums_[of.held ? 1 : 0][of.end * (blocks_.blocks() + 1) + of.begin];
  return {.ns = units(block.ns),
          .needed = slots(block.bytes + blocks_.beside(of.begin)),
          .taken = slots(sums[1]) - slots(sums[0])};
}

// The gradient of the sweep's last block is in memory throughout.
NestTable::Step NestTable::through(const Sweep& of, std::size_t middle) const {
  return {.ns = units(blocks_.through_ns(of.begin, middle)),
          .needed = slots(blocks_.through_bytes(of.begin, middle) + blocks_.carried(of.end - 1)),
          .taken = slots(blocks_.frontier(of.begin, middle, of.end))};
}

NestTable::Step NestTable::kept(std::size_t block) const {
  return {.ns = 0,
          .needed = slots(blocks_.saved(block) + blocks_.beside(block)),
          .taken = slots(saved_sums_[block + 1]) - slots(saved_sums_[block])};
}

NestTable::Stays NestTable::stays(std::size_t begin, std::size_t end) const {
  const std::int64_t own = blocks_.held(begin, end);
  return {.own = slots(own), .all = slots(own + blocks_.asked_later(begin, end))};
}

void NestTable::fill(const Sweep& of) {
  Row& here = sweeps_[number(of)];
  here.assign(width_, of.begin == of.end ? 0 : kNever);
  if (of.begin == of.end || of.end > blocks_.reach(of.begin)) return;
  const auto width = static_cast<std::int32_t>(width_);
  const Step first = direct(of);
  const std::int32_t* const rest = sweep({of.begin + 1, of.end, of.held}).data();
  for (std::int32_t m = std::max(first.needed, first.taken); m < width; ++m) {
    here[static_cast<std::size_t>(m)] = std::min(kNever, first.ns + rest[m - first.taken]);
  }
  for (std::size_t middle = of.begin + 1; middle < of.end; ++middle) {
    const Step step = through(of, middle);
    const std::int32_t* const later = sweep({middle, of.end, of.held}).data();
    const std::int32_t* const anew = sweep({of.begin, middle, false}).data();
    const std::int32_t* const held = sweep({of.begin, middle, true}).data();
    for (std::int32_t m = std::max(step.needed, step.taken); m < width; ++m) {
      const std::int32_t left = m - step.taken;
      const std::int32_t ns = step.ns + later[left] + std::min(anew[m], held[left]);
      here[static_cast<std::size_t>(m)] = std::min(here[static_cast<std::size_t>(m)], ns);
    }
  }
}

void NestTable::fill_least() {
  const std::size_t all = blocks_.blocks();
  const auto width = static_cast<std::int32_t>(width_);
  least_.assign((all + 1) * width_, kNever);
  std::fill(least_.begin() + static_cast<std::ptrdiff_t>(all * width_), least_.end(), 0);
  for (std::size_t i = all; i-- > 0;) {
    std::int32_t* const here = &least_[i * width_];
    const Step keeps = kept(i);
    const std::int32_t* const rest = least(i + 1);
    for (std::int32_t m = std::max(keeps.needed, keeps.taken); m < width; ++m) {
      here[m] = std::min(kNever, rest[m - keeps.taken]);
    }
    for (std::size_t end = i + 1; end <= blocks_.reach(i); ++end) {
      const Stays stay = stays(i, end);
      const std::int32_t* const anew = sweep({i, end, false}).data();
      const std::int32_t* const held = sweep({i, end, true}).data();
      const std::int32_t* const later = least(end);
      for (std::int32_t m = stay.all; m < width; ++m) {
        const std::int32_t own = std::min(anew[m - stay.own], held[m - stay.all]);
        here[m] = std::min(here[m], own + later[m - stay.all]);
      }
    }
  }
}

std::int32_t NestTable::least_slots() const {
  std::int32_t slots = 0;
  while (slots < choices_.slots() && !fits(slots)) ++slots;
  return slots;
}

std::vector<PlanSpan> NestTable::spans(std::int32_t slots) const {
  std::vector<PlanSpan> found;
  if (!fits(slots)) return found;
  std::size_t left = own(slots);
  for (std::size_t i = 0; i < blocks_.blocks();) {
    const std::int32_t best = least(i)[left];
    const Step keeps = kept(i);
    const auto needed = static_cast<std::size_t>(std::max(keeps.needed, keeps.taken));
    const auto taken = static_cast<std::size_t>(keeps.taken);
    if (left >= needed && least(i + 1)[left - taken] == best) {
      left -= taken;
      ++i;
      continue;
    }
    for (std::size_t end = i + 1; end <= blocks_.reach(i); ++end) {
      const auto [own, all] = stays(i, end);
      const auto m = static_cast<std::int32_t>(left);
      if (m < all) continue;
      const auto for_anew = static_cast<std::size_t>(m - own);
      const auto for_held = static_cast<std::size_t>(m - all);
      const Sweep anew{i, end, false}, held{i, end, true};
      const bool again = sweep(anew)[for_anew] < sweep(held)[for_held];
      const std::int32_t ns = again ? sweep(anew)[for_anew] : sweep(held)[for_held];
      if (ns + least(end)[for_held] != best) continue;
      found.push_back(again ? span(anew, for_anew, {}, 1) : span(held, for_held, {}, 1));
      left = for_held;
      i = end;
      break;
    }
  }
  return found;
}

PlanSpan NestTable::span(const Sweep& of, std::size_t left,
                         const std::vector<std::uint64_t>& around, std::size_t depth) const {
  const std::size_t first = blocks_.first(of.begin), last = blocks_.first(of.end);
  PlanSpan span{.first = choices_.first_place(first), .last = choices_.first_place(last) - 1};
  std::set<std::uint64_t> keep(std::lower_bound(around.begin(), around.end(), span.first),
                               std::upper_bound(around.begin(), around.end(), span.last));
  for (std::size_t op = first; op < last; ++op) {
    const bool kept = !blocks_.runs_again(op) || (of.held && blocks_.is_asked_from(op, of.end));
    for (std::uint64_t at = choices_.first_place(op); kept && at < choices_.first_place(op + 1);
         ++at) {
      keep.insert(at);
    }
  }
  span.keep.assign(keep.begin(), keep.end());
  if (depth < kSpanDepth) span.inner = inner(of, left, span.keep, depth + 1);
  return span;
}

std::vector<PlanSpan> NestTable::inner(Sweep of, std::size_t left,
                                       const std::vector<std::uint64_t>& around,
                                       std::size_t depth) const {
  std::vector<PlanSpan> found;
  while (of.begin < of.end) {
    const std::int32_t best = sweep(of)[left];
    const Step first = direct(of);
    const Sweep rest{of.begin + 1, of.end, of.held};
    const auto fits_in = [&](const Step& step) {
      return left >= static_cast<std::size_t>(std::max(step.needed, step.taken));
    };
    if (fits_in(first) &&
        first.ns + sweep(rest)[left - static_cast<std::size_t>(first.taken)] == best) {
      left -= static_cast<std::size_t>(first.taken);
      of = rest;
      continue;
    }
    for (std::size_t middle = of.begin + 1; middle < of.end; ++middle) {
      const Step step = through(of, middle);
      if (!fits_in(step)) continue;
      const std::size_t less = left - static_cast<std::size_t>(step.taken);
      const Sweep anew{of.begin, middle, false}, held{of.begin, middle, true};
      const Sweep later{middle, of.end, of.held};
      const bool again = sweep(anew)[left] <= sweep(held)[less];
      const std::int32_t own = again ? sweep(anew)[left] : sweep(held)[less];
      if (step.ns + sweep(later)[less] + own != best) continue;
      found.push_back(again ? span(anew, left, around, depth) : span(held, less, around, depth));
      left = less;
      of = later;
      break;
    }
  }
  return found;
}

}  // namespace ferry::plan
