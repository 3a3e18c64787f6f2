// Implements run_schedule.h: runs orders, and compares what the accesses saw.
#include "sim/explore/run_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/choices/hash.h"

namespace ferry::explore {
namespace {

std::vector<ActionId> issue_order(const OpGraph& graph) {
  std::vector<ActionId> order(graph.size());
  std::iota(order.begin(), order.end(), ActionId{0});
  return order;
}

}  // namespace

Memory::Memory(const OpGraph& graph, std::span<const ActionId> order)
    : graph_(&graph), shift_(graph.lives().size()), staged_(graph.size(), 0) {
  std::vector<std::size_t> place(graph.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (std::size_t i = 0; i < shift_.size(); ++i) {
    const Life& life = graph.lives()[i];
    shift_[i] = life.beside;
    if (life.waits.empty()) continue;
    std::size_t begins = place[life.hand_out];
    for (const ActionId use : life.uses) begins = std::min(begins, place[use]);
    for (const ActionId wait : life.waits) {
      if (place[wait] > begins) shift_[i] = life.apart;
    }
  }
}

template <class F>
void Memory::each(const Piece& piece, ActionId by, F&& f) const {
  const Life& life = graph_->lives()[piece.life];
  const std::uint64_t shift = shift_[piece.life];
  const std::uint64_t first = piece.range.address + shift, last = first + piece.range.bytes;
  std::uint64_t begin = first;
  Content run;
  bool any = false;
  const auto add = [&](std::uint64_t from, Content content) {
    if (any && content == run) return;
    if (any) f(begin - shift, from - shift, run);
    any = true;
    begin = from;
    run = content;
  };
  std::uint64_t at = first;
  contents_.visit(first, last, [&](std::uint64_t from, std::uint64_t to, Content content) {
    if (at < from) add(at, Content{});
    if (content.gone > by) {
      content = {choices::mix_bits(content.gone), content.gone, 0};
    } else if (content.writer != kNoAction && (*graph_)[content.writer].op < life.since) {
      content = {};  // left over from an earlier life
    }
    content.gone = 0;
    add(std::max(at, from), content);
    at = std::min(to, last);
  });
  if (at < last) add(at, Content{});
  if (any) f(begin - shift, last - shift, run);
}

std::uint64_t Memory::read(std::span<const Piece> pieces, ActionId by) const {
  std::uint64_t hash = 0;
  for (const Piece& piece : pieces) {
    each(piece, by, [&](std::uint64_t begin, std::uint64_t end, const Content& content) {
      hash = choices::combine(hash, end - begin);
      hash = choices::combine(hash, content.value);
    });
  }
  return hash;
}

// A copy to the host matters only to its readers. So at the end it counts as itself, torn or not.
std::uint64_t Memory::left(const Piece& piece) const {
  std::uint64_t hash = 0;
  each(piece, kNoAction, [&](std::uint64_t begin, std::uint64_t end, const Content& content) {
    const bool copy = content.writer != kNoAction && (*graph_)[content.writer].offload;
    hash = choices::combine(hash, end - begin);
    hash = choices::combine(hash, copy ? content.writer : content.value);
  });
  return hash;
}

std::vector<Sight> Memory::look(std::span<const Piece> pieces, ActionId by) const {
  std::vector<Sight> sights;
  for (const Piece& piece : pieces) {
    each(piece, by, [&](std::uint64_t begin, std::uint64_t end, const Content& content) {
      sights.push_back({{begin, end - begin}, content.writer, content.value});
    });
  }
  return sights;
}

void Memory::run(ActionId id) {
  const Action& action = (*graph_)[id];
  if (action.kind == ActionKind::kStage) {
    staged_[id + 1] = read(id);
    return;
  }
  std::uint64_t value =
      choices::combine(action.op, action.kind == ActionKind::kDrain ? staged_[id] : read(id));
  value += value == 0 ? 1 : 0;
  for (const Piece& piece : graph_->writes(id)) {
    const std::uint64_t begin = piece.range.address + shift_[piece.life];
    const std::uint64_t end = begin + piece.range.bytes;
    if (action.kind != ActionKind::kTakeBack) {
      contents_.replace(begin, end, {value, id, 0});
    } else {
      contents_.update(begin, end,
                       [&](std::uint64_t, std::uint64_t, Content& content) { content.gone = id; });
    }
  }
}

Outcome run_schedule(const OpGraph& graph, std::span<const ActionId> order) {
  Memory memory(graph, order);
  Outcome outcome;
  outcome.read.resize(graph.size());
  outcome.replaced.resize(graph.size());
  for (const ActionId id : order) {
    outcome.read[id] = memory.read(id);
    outcome.replaced[id] = graph[id].kind == ActionKind::kTakeBack ? 0 : memory.replaced(id);
    memory.run(id);
  }
  for (const Piece& piece : graph.left()) outcome.left.push_back(memory.left(piece));
  return outcome;
}

Outcome run_in_issue_order(const OpGraph& graph) { return run_schedule(graph, issue_order(graph)); }

// True if the copy to the host met a later in-place write by the program. This tears the copy,
// which harms nobody until it is read (happens_before.h).
static bool is_torn(const OpGraph& graph, std::span<const ActionId> order, ActionId copy) {
  const Met met = explain(graph, order, {Evidence::kRead, copy, 0});
  if (met.actual == kNoAction || met.actual < copy) return false;
  if (graph.recording()[graph[met.actual].op].step != Step::kUser) return false;
  const auto life = [&](std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
      if (piece.range.address <= met.range.address && met.range.address < piece.range.end()) {
        return std::optional(piece.life);
      }
    }
    return std::optional<std::uint32_t>();
  };
  return life(graph.reads(copy)) == life(graph.writes(met.actual));
}

std::optional<Difference> compare(const OpGraph& graph, std::span<const ActionId> order,
                                  const Outcome& reference, const Outcome& outcome) {
  std::optional<Difference> unread;
  for (const ActionId id : order) {
    const bool saw = reference.read[id] != outcome.read[id];
    if (saw && !(graph[id].offload && is_torn(graph, order, id))) {
      return Difference{Evidence::kRead, id, 0};
    }
    if (!unread && (saw || reference.replaced[id] != outcome.replaced[id])) {
      unread = Difference{Evidence::kUnread, id, 0};
    }
  }
  for (std::size_t i = 0; i < reference.left.size(); ++i) {
    if (reference.left[i] != outcome.left[i]) return Difference{Evidence::kLeft, kNoAction, i};
  }
  return unread;
}

// Returns what the action meets in this order: first the bytes that it reads, then those that it
// replaces.
static std::vector<Sight> met_by(const OpGraph& graph, std::span<const ActionId> order,
                                 ActionId action) {
  Memory memory(graph, order);
  for (const ActionId id : order) {
    if (id == action) break;
    memory.run(id);
  }
  std::vector<Sight> sights = memory.look(graph.reads(action), action);
  const std::vector<Sight> replaced = memory.look(graph.writes(action), action);
  sights.insert(sights.end(), replaced.begin(), replaced.end());
  return sights;
}

static std::vector<Sight> left_at(const OpGraph& graph, std::span<const ActionId> order,
                                  std::size_t left) {
  Memory memory(graph, order);
  for (const ActionId id : order) memory.run(id);
  std::vector<Sight> sights = memory.look({&graph.left()[left], 1}, kNoAction);
  for (Sight& sight : sights) {
    if (sight.writer != kNoAction && graph[sight.writer].offload) sight.value = 0;
  }
  return sights;
}

// Returns the first bytes for which `differ` is true. Both lists cover the same bytes in the same
// order, but may be cut differently.
template <class F>
static std::optional<Met> first_difference(const std::vector<Sight>& expected,
                                           const std::vector<Sight>& actual, F&& differ) {
  for (std::size_t i = 0, j = 0; i < expected.size() && j < actual.size();) {
    const Sight &a = expected[i], &b = actual[j];
    const std::uint64_t from = std::max(a.range.address, b.range.address);
    const std::uint64_t to = std::min(a.range.end(), b.range.end());
    const Met met{{from, to - from}, a.writer, b.writer};
    if (from < to && differ(a, b, met.range)) return met;
    i += a.range.end() <= to ? 1u : 0u;
    j += b.range.end() <= to ? 1u : 0u;
  }
  return std::nullopt;
}

Met explain(const OpGraph& graph, std::span<const ActionId> order, const Difference& difference) {
  const auto sights = [&](std::span<const ActionId> in) {
    return difference.evidence == Evidence::kLeft ? left_at(graph, in, difference.left)
                                                  : met_by(graph, in, difference.action);
  };
  const auto met = first_difference(
      sights(issue_order(graph)), sights(order),
      [](const Sight& a, const Sight& b, const Range&) { return a.value != b.value; });
  return met.value_or(Met{});
}

bool meets_another(const OpGraph& graph, std::span<const ActionId> order, ActionId action,
                   Range range) {
  return first_difference(met_by(graph, issue_order(graph), action), met_by(graph, order, action),
                          [&](const Sight& a, const Sight& b, const Range& bytes) {
                            return a.writer != b.writer && bytes.address < range.end() &&
                                   range.address < bytes.end();
                          })
      .has_value();
}

}  // namespace ferry::explore
