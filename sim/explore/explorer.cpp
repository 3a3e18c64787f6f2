// Implements explorer.h: makes orders, runs them, and compares their values with those of issue
// order.
#include "sim/explore/explorer.h"

#include <algorithm>

#include "sim/choices/strategies.h"

namespace ferry::explore {

Explorer::Explorer(const Recording& recording, bool host_free_waits)
    : graph_(recording, host_free_waits), reference_(run_in_issue_order(graph_)) {}

std::optional<Difference> Explorer::difference(const std::vector<ActionId>& order,
                                               Evidence least) const {
  const auto found = compare(graph_, order, reference_, run_schedule(graph_, order));
  return found && found->evidence <= least ? found : std::nullopt;
}

std::optional<Witness> Explorer::witness(const Schedule& schedule) const {
  const std::vector<ActionId> order = order_of(graph_, schedule);
  const auto found = difference(order);
  if (!found) return std::nullopt;
  return Witness{schedule, *found, explain(graph_, order, *found)};
}

Confirmation Explorer::confirm(const check::Hazard& hazard) const {
  using Result = Confirmation::Result;
  if (!is_race(hazard.kind)) return {};
  const ActionId earlier = graph_.find(hazard.earlier.op, hazard.earlier.by_host);
  const ActionId later = graph_.find(hazard.later.op, hazard.later.by_host);
  if (earlier == kNoAction || later == kNoAction) return {Result::kUnconfirmed, {}};
  if (earlier >= later || graph_.before(later)[earlier]) return {Result::kUnconfirmed, {}};
  auto found = witness({{earlier, later}});
  const auto order = order_of(graph_, {{earlier, later}});
  // If only another race shows in this schedule, the schedule is not a witness of this hazard.
  const bool theirs = meets_another(graph_, order, later, hazard.range) ||
                      meets_another(graph_, order, earlier, hazard.range);
  if (found && theirs) return {Result::kConfirmed, std::move(found)};
  return {undefined(later, hazard.range) ? Result::kUndefined : Result::kUnconfirmed, {}};
}

// True if the action reads some of these bytes and, in issue order, nobody has written them since
// their allocation.
bool Explorer::undefined(ActionId later, Range range) const {
  std::vector<ActionId> order;
  for (ActionId id = 0; id < graph_.size(); ++id) order.push_back(id);
  Memory memory(graph_, order);
  for (ActionId id = 0; id < later; ++id) memory.run(id);
  bool reads = false;
  for (const Sight& sight : memory.look(graph_.reads(later), later)) {
    if (sight.range.address >= range.end() || range.address >= sight.range.end()) continue;
    if (sight.writer != kNoAction) return false;
    reads = true;
  }
  return reads;
}

Search Explorer::search(choices::Choices& choices, std::uint64_t orders) const {
  Search search;
  while (search.orders < orders && !search.witness) {
    const std::vector<ActionId> order = draw_order(graph_, choices);
    search.orders++;
    if (difference(order)) search.witness = witness(schedule_of(order));
  }
  return search;
}

Search Explorer::search_all(std::uint64_t orders_max) const {
  Search search;
  choices::Enumeration all({});
  do {
    if (search.orders == orders_max) return search;
    choices::EnumeratedChoices every(all);
    const std::vector<ActionId> order = draw_order(graph_, every);
    search.orders++;
    if (difference(order)) {
      search.witness = witness(schedule_of(order));
      return search;
    }
  } while (all.next());
  search.complete = true;
  return search;
}

namespace {

// Names an action: "`reload` #41", "mm #43".
std::string say(const OpGraph& graph, ActionId action) {
  const StreamOp op = graph.recording()[graph[action].op];
  std::string text;
  if (op.step != Step::kUser) {
    text.append("`").append(name(op.step)).append("`");
  } else {
    text.append(op.name.empty() ? check::name(op.kind) : op.name);
  }
  return text.append(" #").append(name_of(graph, action));
}

std::string left_by(const OpGraph& graph, ActionId writer) {
  if (writer == kNoAction) return "undefined";
  const bool freed = graph[writer].kind == ActionKind::kTakeBack;
  return (freed ? "what " + say(graph, writer) + " left" : "what " + say(graph, writer) + " wrote");
}

// Begins a sentence: "mm #43 reads 16 bytes at 0x10: ".
std::string access(const OpGraph& graph, ActionId action, Range range) {
  bool reads = false;
  for (const Piece& piece : graph.reads(action)) {
    reads |= piece.range.address <= range.address && range.address < piece.range.end();
  }
  return say(graph, action) + (reads ? " reads " : " overwrites ") + check::to_string(range) + ": ";
}

}  // namespace

std::string to_string(const Explorer& explorer, const Witness& witness) {
  const OpGraph& graph = explorer.graph();
  Met met = witness.met;
  std::string text = witness.difference.evidence == Evidence::kLeft
                         ? "at the end " + check::to_string(met.range) + " hold "
                         : access(graph, witness.difference.action, met.range);
  if (met.actual == met.expected) {
    // The expected op wrote it, but saw something wrong itself, perhaps through other ops.
    const std::vector<ActionId> order = order_of(graph, witness.schedule);
    text += left_by(graph, met.actual) + ", and ";
    ActionId source = met.actual;
    for (; met.actual == met.expected && met.actual != kNoAction;) {
      source = met.actual;
      if (graph[source].kind == ActionKind::kDrain) source--;  // the host's read for it
      met = explain(graph, order, {Evidence::kRead, source, 0});
    }
    text += access(graph, source, met.range);
  }
  text += left_by(graph, met.actual) + ", not " + left_by(graph, met.expected);
  return witness.difference.evidence == Evidence::kUnread ? text + " (nobody reads it)" : text;
}

}  // namespace ferry::explore
