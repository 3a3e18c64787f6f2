#include "plan/lower_bound.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Number of kernels for which a minimum cut is computed: those where the knapsack costs most.
// Larger: the bound may be higher, and takes longer.
constexpr std::size_t kTurns = 8;

// Returns why the proof does not cover the statement; empty: it does.
std::string_view outside_proof(const Action& action, CodeKind kind) {
  const bool in_backward = kind == CodeKind::kBody;
  if (const auto* stream = std::get_if<SetStream>(&action)) {
    return stream->stream == 0 ? "" : "it computes on several streams";
  }
  if (const auto* backward = std::get_if<Backward>(&action)) {
    if (kind != CodeKind::kMain) return "it runs backward inside a call";
    if (backward->create_graph) return "its backward makes a graph";
    return backward->inputs.empty() ? "" : "its backward requests gradients of its own";
  }
  if (const auto* call = std::get_if<Call>(&action)) {
    if (call->recompute == Recompute::kReentrant) return "it has reentrant checkpoints";
    if (call->recompute == Recompute::kReplay) return "it has spans of operators";
    return in_backward ? "its backward calls code" : "";
  }
  if (std::holds_alternative<MakeNode>(action) || std::holds_alternative<Save>(action)) {
    return in_backward ? "its backward makes a graph" : "";
  }
  if (std::holds_alternative<When>(action)) return "a recompute differs from the first run";
  if (std::holds_alternative<Move>(action)) return "it moves a global";
  return std::holds_alternative<Raise>(action) ? "it raises errors" : "";
}

}  // namespace

std::string outside_proof(const Program& program) {
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const std::string_view why = outside_proof(statement.action, code.kind);
      if (!why.empty()) return std::string(why);
    }
  }
  return "";
}

std::optional<Certificate> certify(const Program& program, const Hardware& hardware,
                                   const KeepTrace& trace, std::int64_t budget_bytes) {
  if (trace.fails) return std::nullopt;
  Certificate certificate;
  certificate.outside_proof = outside_proof(program);
  const LowerBound bound(trace, hardware, certificate.outside_proof.empty());
  certificate.least_bytes = std::max(bound.least_bytes(), trace.optimizer_bytes);
  if (budget_bytes >= trace.optimizer_bytes) certificate.step_ns = bound.step_ns(budget_bytes);
  if (certificate.step_ns) *certificate.step_ns += trace.optimizer_ns;
  return certificate;
}

// The bytes that may be absent at one kernel, by maker. A Fenwick tree holds sums of bytes and of
// recompute times over the cheapest makers, so the fractional knapsack takes logarithmic time.
class LowerBound::Stock {
 public:
  explicit Stock(const LowerBound& bound) : bound_(bound), sums_(bound.cheap_ + 1) {
    held_.resize(bound.makers_.size());
    for (top_ = 1; top_ * 2 <= bound.cheap_; top_ *= 2) {
    }
  }

  void add(const Change& change) {
    const Maker& maker = bound_.makers_[change.maker];
    std::int64_t& held = held_[change.maker];
    const sim::Time before = ns(maker, held);
    held += change.bytes;
    bytes_ += change.bytes;
    if (change.maker >= bound_.cheap_) return;
    for (std::size_t i = change.maker + 1; i < sums_.size(); i += i & (~i + 1)) {
      sums_[i].bytes += change.bytes;
      sums_[i].ns += ns(maker, held) - before;
    }
  }
  std::int64_t bytes() const { return bytes_; }

  // Solves the fractional knapsack: the least time to have `absent` bytes absent, by recomputes or,
  // if a byte is cheaper there, by the link.
  sim::Time least_ns(std::int64_t absent) const {
    Maker sum;
    std::size_t at = 0;
    for (std::size_t step = top_; step > 0 && bound_.cheap_ > 0; step /= 2) {
      if (at + step >= sums_.size() || sum.bytes + sums_[at + step].bytes > absent) continue;
      at += step;
      sum.bytes += sums_[at].bytes;
      sum.ns += sums_[at].ns;
    }
    const std::int64_t rest = absent - sum.bytes;
    if (at < bound_.cheap_) return sum.ns + ns(bound_.makers_[at], rest);
    return sum.ns + static_cast<sim::Time>(Wide{rest} * 1000 / bound_.link_bytes_per_us_);
  }

 private:
  static sim::Time ns(const Maker& maker, std::int64_t bytes) {
    return maker.bytes == 0 ? 0 : static_cast<sim::Time>(Wide{maker.ns} * bytes / maker.bytes);
  }

  const LowerBound& bound_;
  std::vector<Maker> sums_;
  std::vector<std::int64_t> held_;  // by maker
  std::int64_t bytes_ = 0;
  std::size_t top_ = 1;
};

LowerBound::LowerBound(const KeepTrace& trace, const Hardware& hardware, bool memory)
    : link_bytes_per_us_(std::max(hardware.link.d2h_alone, hardware.link.d2h_both)) {
  if (!memory) {
    // Without the proof, the order of kernels may differ, and gradients may be added elsewhere.
    sim::Time launches = 0;
    for (const TracedKernel& kernel : trace.kernels) {
      if (kernel.sum) continue;
      compute_ns_ += kernel.ns;
      launches += hardware.launch_ns;
    }
    compute_ns_ = std::max(compute_ns_, launches - hardware.launch_ns);
    least_bytes_ = trace.held_bytes;
    return;
  }
  const Turns turns(trace, hardware);
  compute_ns_ = turns.compute_ns;
  begins_ = turns.begins;
  rest_ = turns.rest;
  needed_ = turns.needed;
  least_bytes_ = *std::max_element(needed_.begin(), needed_.end());
  makers_.resize(trace.kernels.size());
  for (std::size_t i = 0; i < makers_.size(); ++i) makers_[i].ns = trace.kernels[i].ns;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    if (!turns.absences[i].empty()) add(trace.storages[i].maker, turns.absences[i]);
  }
  order_makers(trace);
  inputs_.emplace(trace, turns);
}

void LowerBound::add(std::uint32_t maker, const std::vector<Absence>& absences) {
  std::int64_t most = 0;
  for (const Absence& absence : absences) {
    changes_.push_back({absence.begin, maker, absence.bytes});
    changes_.push_back({absence.end, maker, -absence.bytes});
    most = std::max(most, absence.bytes);
  }
  makers_[maker].bytes += most;
}

bool LowerBound::cheaper_than_link(const Maker& maker) const {
  return Wide{maker.ns} * link_bytes_per_us_ < Wide{maker.bytes} * 1000;
}

void LowerBound::order_makers(const KeepTrace& trace) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < trace.kernels.size(); ++i) {
    if (makers_[i].bytes > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return Wide{makers_[a].ns} * makers_[b].bytes < Wide{makers_[b].ns} * makers_[a].bytes;
  });
  std::vector<std::uint32_t> place(makers_.size());
  std::vector<Maker> ordered;
  for (const std::uint32_t maker : order) {
    place[maker] = static_cast<std::uint32_t>(ordered.size());
    ordered.push_back(makers_[maker]);
    if (cheaper_than_link(makers_[maker])) cheap_ = ordered.size();
  }
  makers_ = std::move(ordered);
  for (Change& change : changes_) change.maker = place[change.maker];
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& a, const Change& b) { return a.turn < b.turn; });
}

std::int64_t LowerBound::copied_bytes(std::uint32_t turn) const {
  const Wide bytes = Wide{begins_[turn]} * link_bytes_per_us_ / 1000 + 1;
  return static_cast<std::int64_t>(std::min<Wide>(bytes, std::numeric_limits<std::int64_t>::max()));
}

std::vector<LowerBound::Priced> LowerBound::priced(std::int64_t budget_bytes) const {
  std::vector<Priced> found;
  Stock stock(*this);
  auto change = changes_.begin();
  for (std::uint32_t turn = 0; turn < begins_.size(); ++turn) {
    for (; change != changes_.end() && change->turn <= turn; ++change) stock.add(*change);
    const std::int64_t absent = needed_[turn] + stock.bytes() - budget_bytes;
    const std::int64_t copied = copied_bytes(turn);
    if (absent <= copied) continue;
    found.push_back({begins_[turn] + rest_[turn] + stock.least_ns(absent - copied), turn});
  }
  return found;
}

std::optional<sim::Time> LowerBound::step_ns(std::int64_t budget_bytes) const {
  if (budget_bytes < least_bytes_) return std::nullopt;
  sim::Time bound = compute_ns_;
  std::vector<Priced> turns = priced(budget_bytes);
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Priced& a, const Priced& b) { return a.ns > b.ns; });
  for (std::size_t i = 0; i < std::min(turns.size(), kTurns); ++i) {
    const std::uint32_t turn = turns[i].turn;
    const std::int64_t room = budget_bytes - needed_[turn] + copied_bytes(turn);
    RecomputeCut cut(*inputs_, turn, link_bytes_per_us_);
    const sim::Time ns = begins_[turn] + rest_[turn] + cut.least_ns(room);
    bound = std::max({bound, turns[i].ns, ns});
  }
  return bound;
}

}  // namespace ferry::plan
