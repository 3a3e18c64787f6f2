#include "plan/span_table.h"

#include <algorithm>
#include <random>
#include <utility>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Number of slots in which memory is counted. Larger: less rounding, a larger and slower table.
constexpr std::int32_t kSlots = 2000;
// Bound on the length of a span, in operators. Larger: longer spans, more time. In a short forward
// spans may be longer: up to kChoices divided by the number of operators.
constexpr std::size_t kLongest = 160;
constexpr std::size_t kChoices = 120'000;
// Random noise on the time of a span, in percent either way: kMuchNoise for every third seed,
// kNoise for the others. Little noise gives the faster plans; much noise gives some that fit where
// no other plan does.
constexpr std::int32_t kNoise = 15;
constexpr std::int32_t kMuchNoise = 40;
// Limits on time for a byte are set at each quarter (1/kPrices) of all saved bytes, sorted by time
// for a byte. Larger: more limits, so more spans and a slower table.
constexpr std::int64_t kPrices = 4;
// Programs with more operators have no such limits, because the table would take long.
constexpr std::size_t kPriced = 4'000;
// Bound on the length, in operators, of a span with a limit. Larger: more spans, more time.
constexpr std::size_t kLongestPriced = 64;
// An operator is recomputed for a part of its results only if the part is at least 1/kPart of its
// saved bytes. Larger: smaller parts are recomputed.
constexpr std::int64_t kPart = 8;
// Bound on the time of all operators together, in units of the table. Larger: finer times; sums
// with noise must stay below SpanTable::kNever.
constexpr sim::Time kUnits = 200'000'000;

// Returns the time of a recompute for a byte, in ps; 0 if there are no bytes.
std::uint32_t price_of(sim::Time ns, std::int64_t bytes) {
  if (bytes <= 0) return 0;
  return static_cast<std::uint32_t>(
      std::min<Wide>(Wide{ns} * 1000 / bytes, SpanChoices::kNoPrice - 1));
}

}  // namespace

SpanChoices::SpanChoices(SpanModel model) : model_(std::move(model)) {
  const std::vector<ModelOperator>& all = model_.operators;
  slots_ = all.empty() ? 0 : kSlots;
  slot_bytes_ = std::max<std::int64_t>((model_.peak_bytes - model_.least_bytes) / kSlots + 1, 1);
  longest_ = std::max(kLongest, kChoices / std::max<std::size_t>(all.size(), 1));
  sim::Time ns = 0;
  std::int64_t saved = 0;
  for (const ModelOperator& op : all) {
    ns += op.ns;
    const std::int64_t before = (saved + slot_bytes_ / 2) / slot_bytes_;
    saved += op.saved_bytes;
    const std::int64_t after = (saved + slot_bytes_ / 2) / slot_bytes_;
    saved_slots_.push_back(static_cast<std::int32_t>(after - before));
    const std::int32_t needed =
        slots_above(op.saved_bytes + std::max<std::int64_t>(op.beside - model_.least_bytes, 0));
    needed_slots_.push_back(std::max(needed, saved_slots_.back()));
    std::size_t until = op.again ? 0 : all.size();
    for (const std::uint32_t s : op.makes) {
      const ModelStorage& storage = model_.storages[s];
      if (storage.written) until = all.size();
      if (storage.saved) until = std::max<std::size_t>(until, storage.last);
    }
    kept_until_.push_back(until);
    price_.push_back(price_of(op.ns, op.saved_bytes));
    places_.push_back(places_.back() + op.count);
  }
  unit_ns_ = ns / kUnits + 1;
  set_prices();
  from_.resize(all.size());
  Marks marks = no_marks();
  for (std::size_t begin = 0; begin < all.size(); ++begin) add_from(begin, marks);
}

void SpanChoices::set_prices() {
  prices_ = {kNoPrice};
  if (model_.operators.size() > kPriced) return;
  std::vector<std::pair<std::uint32_t, std::int64_t>> bytes;
  std::int64_t all = 0, so_far = 0;
  for (const ModelOperator& op : model_.operators) {
    if (op.saved_bytes <= 0) continue;
    bytes.emplace_back(price_of(op.ns, op.saved_bytes), op.saved_bytes);
    all += op.saved_bytes;
  }
  std::sort(bytes.begin(), bytes.end());
  std::int64_t part = 1;
  for (const auto& [price, here] : bytes) {
    so_far += here;
    if (so_far < all / kPrices * part || part == kPrices) continue;
    while (so_far >= all / kPrices * part && part < kPrices) ++part;
    const std::uint32_t about = price / 2 * 3 + 1;
    if (about > prices_.back() || prices_.back() == kNoPrice) prices_.push_back(about);
  }
  prices_.push_back(kNoPrice - 1);
}

std::int64_t SpanChoices::dropped_bytes(const ModelOperator& op, std::size_t end) const {
  std::int64_t bytes = 0;
  for (const std::uint32_t s : op.makes) {
    const ModelStorage& storage = model_.storages[s];
    if (storage.saved && storage.last < end) bytes += storage.bytes;
  }
  return bytes;
}

bool SpanChoices::is_kept(std::size_t op, std::size_t end, std::uint32_t price) const {
  if (end > kept_until_[op]) return price_[op] > price;
  if (price == kNoPrice || kept_until_[op] >= model_.operators.size()) return true;
  const ModelOperator& made = model_.operators[op];
  const std::int64_t bytes = dropped_bytes(made, end);
  return bytes == 0 || bytes < made.saved_bytes / kPart || price_of(made.ns, bytes) > price;
}

SpanChoices::Marks SpanChoices::no_marks() const {
  Marks marks;
  marks.needed.assign(model_.storages.size(), 0);
  marks.held.assign(model_.storages.size(), 0);
  marks.runs.assign(model_.operators.size(), 0);
  return marks;
}

std::int32_t SpanChoices::slots_above(std::int64_t bytes) const {
  const std::int64_t slots = (bytes + slot_bytes_ - 1) / slot_bytes_;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(slots, 0, slots_ + 1));
}

std::int32_t SpanChoices::slots_of(std::int64_t bytes) const {
  const std::int64_t slots = (bytes - model_.least_bytes) / slot_bytes_;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(slots, 0, slots_));
}

std::int64_t SpanChoices::made_bytes(std::size_t op) const {
  std::int64_t bytes = 0;
  for (const std::uint32_t s : model_.operators[op].makes) bytes += model_.storages[s].bytes;
  return bytes;
}

// Computes what a span costs. The storages that the span makes and drops, and that its own nodes
// save, must be recomputed. Going from the last operator to the first, it finds the operators that
// are needed for this.
SpanChoices::Weighed SpanChoices::weigh(std::size_t begin, std::size_t end, std::uint32_t price,
                                        Marks& marks) const {
  const std::uint32_t now = ++marks.now;
  Weighed found;
  bool first_runs = false, last_matters = false;
  std::int64_t part = 0;  // retained bytes of operators that are recomputed for a part
  const auto hold = [&](std::uint32_t s) {
    if (model_.storages[s].saved || marks.held[s] == now) return;
    marks.held[s] = now;
    found.held += model_.storages[s].bytes;
  };
  for (std::size_t i = begin; i < end; ++i) {
    for (const std::uint32_t s : model_.operators[i].saves) {
      const std::uint32_t maker = model_.storages[s].maker;
      if (maker < begin || maker >= end || is_kept(maker, end, price)) continue;
      if (model_.storages[s].last >= end) continue;  // retained: read or saved after the span
      marks.needed[s] = now;
      last_matters |= i + 1 == end;
    }
  }
  // A span that ended one operator earlier would retain what its last operator reads.
  const std::vector<std::uint32_t>& read_last = model_.operators[end - 1].reads;
  last_matters |= std::any_of(read_last.begin(), read_last.end(),
                              [&](std::uint32_t s) { return marks.needed[s] == now; });
  for (std::size_t i = end; i-- > begin;) {
    const ModelOperator& op = model_.operators[i];
    if (is_kept(i, end, price)) {
      found.retained += saved_slots_[i];
      continue;
    }
    if (end <= kept_until_[i]) part += op.saved_bytes - dropped_bytes(op, end);
    const bool runs = std::any_of(op.makes.begin(), op.makes.end(),
                                  [&](std::uint32_t s) { return marks.needed[s] == now; });
    if (!runs) continue;
    marks.runs[i] = now;
    found.ns += op.ns;
    first_runs |= i == begin;
    last_matters |= i + 1 == end;
    for (const std::uint32_t s : op.reads) {
      const std::uint32_t maker = model_.storages[s].maker;
      if (maker < begin || is_kept(maker, end, price)) {
        hold(s);
      } else {
        marks.needed[s] = now;
      }
    }
  }
  found.retained += static_cast<std::int32_t>((part + slot_bytes_ / 2) / slot_bytes_);
  found.useful = first_runs && last_matters;
  return found;
}

void SpanChoices::add_from(std::size_t begin, Marks& marks) {
  const std::vector<ModelOperator>& all = model_.operators;
  if (!all[begin].again) return;
  std::int64_t made = 0, most = 0;
  std::int32_t kept = 0;  // slots if nothing were recomputed
  for (std::size_t end = begin + 1; end <= std::min(all.size(), begin + longest_); ++end) {
    const ModelOperator& last = all[end - 1];
    made += last.saved_bytes;
    most = std::max(most, made + std::max<std::int64_t>(last.beside - model_.least_bytes, 0));
    if (slots_above(most) > slots_) return;
    kept += saved_slots_[end - 1];
    Weighed before;
    for (const std::uint32_t price : prices_) {
      if (price != kNoPrice && end - begin > kLongestPriced) break;
      const Weighed found = weigh(begin, end, price, marks);
      const bool same = found.ns == before.ns && found.retained == before.retained;
      if (price != kNoPrice && same) continue;
      before = found;
      const std::int32_t held = static_cast<std::int32_t>(
          std::min<std::int64_t>((found.held + slot_bytes_ / 2) / slot_bytes_, slots_ + 1));
      const Choice choice{
          .begin = static_cast<std::uint32_t>(begin),
          .end = static_cast<std::uint32_t>(end),
          .ns = static_cast<std::int32_t>(found.ns / unit_ns_),
          .needed_slots = std::max(slots_above(most + found.held), found.retained + held),
          .retained_slots = found.retained + held,
          .price = price};
      const bool frees = choice.retained_slots < kept && choice.needed_slots <= slots_;
      if (found.useful && frees) from_[begin].push_back(choice);
    }
    if (!last.joins_next) return;
  }
}

PlanSpan SpanChoices::span(const Choice& choice) const {
  PlanSpan span{.first = places_[choice.begin], .last = places_[choice.end] - 1};
  Marks marks = no_marks();
  weigh(choice.begin, choice.end, choice.price, marks);
  for (std::size_t i = choice.begin; i < choice.end; ++i) {
    if (marks.runs[i] == marks.now) continue;
    for (std::uint64_t place = places_[i]; place < places_[i + 1]; ++place) {
      span.keep.push_back(place);
    }
  }
  return span;
}

std::int32_t SpanTable::ns(const SpanChoices::Choice& choice) const {
  return static_cast<std::int32_t>(std::int64_t{choice.ns} * percent_[choice.begin] / 100);
}

SpanTable::SpanTable(const SpanChoices& choices, std::uint64_t seed, bool priced)
    : choices_(choices), priced_(priced), width_(static_cast<std::size_t>(choices.slots()) + 1) {
  std::mt19937_64 draws(seed);
  const std::size_t all = choices.operators();
  for (std::size_t i = 0; i < all; ++i) {
    const std::int32_t most = seed == 0 ? 0 : seed % 3 == 0 ? kMuchNoise : kNoise;
    percent_.push_back(100 - most + static_cast<std::int32_t>(draws() % (2 * most + 1)));
  }
  least_.assign((all + 1) * width_, kNever);
  std::fill(least_.begin() + static_cast<std::ptrdiff_t>(all * width_), least_.end(), 0);
  const auto width = static_cast<std::int32_t>(width_);
  for (std::size_t i = all; i-- > 0;) {
    std::int32_t* const here = &least_[i * width_];
    const auto take = [&](std::size_t end, std::int32_t ns, std::int32_t needed,
                          std::int32_t retained) {
      const std::int32_t* const rest = at(end) - retained;
      for (std::int32_t m = needed; m < width; ++m) here[m] = std::min(here[m], rest[m] + ns);
    };
    take(i + 1, 0, choices.needed_slots(i), choices.kept_slots(i));
    for (const SpanChoices::Choice& choice : choices.from(i)) {
      if (has(choice)) take(choice.end, ns(choice), choice.needed_slots, choice.retained_slots);
    }
  }
}

std::int32_t SpanTable::least_slots() const {
  std::int32_t slots = 0;
  while (slots < choices_.slots() && !fits(slots)) ++slots;
  return slots;
}

std::vector<PlanSpan> SpanTable::spans(std::int32_t slots) const {
  std::vector<PlanSpan> found;
  if (!fits(slots)) return found;
  for (std::size_t i = 0; i < choices_.operators();) {
    const std::int32_t least = at(i)[slots];
    const std::int32_t kept = choices_.kept_slots(i);
    if (slots >= choices_.needed_slots(i) && at(i + 1)[slots - kept] == least) {
      slots -= kept;
      ++i;
      continue;
    }
    for (const SpanChoices::Choice& choice : choices_.from(i)) {
      if (slots < choice.needed_slots || !has(choice)) continue;
      if (at(choice.end)[slots - choice.retained_slots] + ns(choice) != least) continue;
      found.push_back(choices_.span(choice));
      slots -= choice.retained_slots;
      i = choice.end;
      break;
    }
  }
  return found;
}

}  // namespace ferry::plan
