#include "verify/oracles/recomputes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "verify/oracles/needs.h"

namespace ferry::verify {
namespace {

// Returns the ops that have an output which a later op of the same code writes.
std::set<const Op*> ops_written_later(const Program& program) {
  std::set<const Op*> written;
  for (const Code& code : program.codes) {
    std::map<Slot, const Op*> made_by;
    for (const Statement& statement : code.statements) {
      const auto* op = std::get_if<Op>(&statement.action);
      if (!op) continue;
      for (const std::uint32_t position : op->writes) {
        const auto found = made_by.find(op->in[position]);
        if (found != made_by.end()) written.insert(found->second);
      }
      for (const Slot slot : op->out) made_by[slot] = op;
    }
  }
  return written;
}

class RecomputeModel {
 public:
  // `plan` is for each call of main; null: there is none.
  RecomputeModel(const Program& program, const SegmentPlan* plan, const std::set<std::string>& kept)
      : program_(program), kept_(kept), written_(ops_written_later(program)) {
    Needs needs = NeedsRun(program).take();
    auto forward = needs.begin();
    for (const Statement& statement : program.codes[program.main].statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call) continue;
      needs_ = std::move(*forward++);
      packs_ = 0;
      Run top;
      Cursor cursor{plan};
      Graph main{.slots = {call->in.begin(), call->in.end()}};
      add_call(top, *call, cursor, false, main);
      counts_.packs_known &= packs_ == needs_.size();
      run_fully(top);
      refused_ = false;
      run_again_where_needed(top);
      counts_.refused += refused_ ? 1 : 0;
    }
  }
  const RecomputeCounts& counts() const { return counts_; }

 private:
  struct Run;
  // An op, a pack, or a segment.
  struct Item {
    const Op* op = nullptr;
    std::unique_ptr<Run> segment = nullptr;
    std::size_t inputs = 0;  // of the segment: this many packs before it
    std::optional<SavedChoice> pack = {};
    bool held = false;          // a pack that is recomputed
    GraphTasks needed_in = {};  // tasks that need it, for the pack of a node
  };
  // Lists what the code of a segment does, with its plain calls; or what a call of main does.
  struct Run {
    const Call* segment = nullptr;
    const SegmentPlan* plan = nullptr;
    bool hooks = true;  // there are hooks around it
    std::vector<Item> items;
    std::size_t packs = 0;
  };
  // Points at the next checkpoint in a plan.
  struct Cursor {
    const SegmentPlan* plan = nullptr;
    std::size_t next = 0;
  };

  // The values and nodes of a code's run that lead to something with a gradient.
  struct Graph {
    std::set<Slot> slots = {};
    std::set<std::uint32_t> nodes = {};
  };
  bool leads_on(const Graph& graph, Slot slot) const {
    if (slot < program_.globals.size()) return program_.globals[slot].requires_grad;
    return graph.slots.contains(slot);
  }

  void add_call(Run& run, const Call& call, Cursor& cursor, bool excluded, Graph& caller) {
    const Code& code = program_.codes[call.code];
    Graph graph;
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      if (leads_on(caller, call.in[i])) graph.slots.insert(code.arguments[i]);
    }
    add_called(run, call, cursor, excluded, graph);
    for (std::size_t i = 0; i < call.out.size(); ++i) {
      if (leads_on(graph, code.results[i])) caller.slots.insert(call.out[i]);
    }
  }

  // On entry, `graph` knows the code's arguments; on return, all of its values.
  void add_called(Run& run, const Call& call, Cursor& cursor, bool excluded, Graph& graph) {
    const Code& code = program_.codes[call.code];
    if (call.recompute != Recompute::kCheckpoint) return add_code(run, code, cursor, graph);
    SegmentPlan plain;
    plain.checkpoint = plain.unlisted = false;
    const SegmentPlan* plan = nullptr;
    if (cursor.plan && cursor.next < cursor.plan->segments.size()) {
      plan = &cursor.plan->segments[cursor.next++];
    } else if (cursor.plan && !cursor.plan->unlisted) {
      plan = &plain;
    }
    Cursor inside{plan};
    if (plan && !plan->checkpoint) return add_code(run, code, inside, graph);
    const std::size_t first = run.items.size();
    for (std::size_t i = 0; i < call.in.size() && !excluded; ++i) add_pack(run);
    Item item;
    item.segment = std::make_unique<Run>();
    item.segment->segment = &call;
    item.segment->plan = plan;
    item.segment->hooks = !excluded;
    item.inputs = run.items.size() - first;
    add_code(*item.segment, code, inside, graph);
    run.items.push_back(std::move(item));
  }

  void add_code(Run& run, const Code& code, Cursor& cursor, Graph& graph) {
    bool excluded = false;
    const auto add_packs = [&](std::size_t count) {
      for (std::size_t i = 0; i < count && !excluded; ++i) add_node_pack(run);
    };
    for (const Statement& statement : code.statements) {
      const Action& action = statement.action;
      if (const auto* op = std::get_if<Op>(&action)) {
        run.items.emplace_back().op = op;
      } else if (const auto* make = std::get_if<MakeNode>(&action)) {
        const auto leads = [&](Slot slot) { return leads_on(graph, slot); };
        if (std::none_of(make->in.begin(), make->in.end(), leads)) continue;
        graph.nodes.insert(make->id);
        graph.slots.insert(make->out.begin(), make->out.end());
        add_packs(make->saved.size());
      } else if (const auto* save = std::get_if<Save>(&action)) {
        if (graph.nodes.contains(save->node)) add_packs(save->slots.size());
      } else if (const auto* exclude = std::get_if<Exclude>(&action)) {
        excluded = exclude->begin;
      } else if (const auto* call = std::get_if<Call>(&action)) {
        add_call(run, *call, cursor, excluded, graph);
      }
    }
  }

  static Item& add_pack(Run& run) {
    const std::size_t ordinal = run.packs++;
    Item& item = run.items.emplace_back();
    const bool planned = run.plan && ordinal < run.plan->choices.size();
    item.pack = planned ? run.plan->choices[ordinal] : SavedChoice::kRecompute;
    item.held = run.segment && item.pack == SavedChoice::kRecompute;
    return item;
  }
  void add_node_pack(Run& run) {
    Item& item = add_pack(run);
    if (packs_ < needs_.size()) {
      item.needed_in = std::move(needs_[packs_++]);
    } else {
      counts_.packs_known = false;
    }
  }

  void run_item(const Item& item) {
    const bool kept = item.op && again_ && kept_.contains(item.op->name);
    if (item.op && !kept) ++counts_.ops[item.op->name];
    if (kept && written_.contains(item.op)) refused_ = true;
    if (!item.segment) return;
    ++counts_.segments;
    run_fully(*item.segment);
  }
  void run_fully(const Run& run) {
    for (const Item& item : run.items) {
      run_item(item);
      if (run.segment && item.pack) count_pack(*item.pack, run.hooks);
    }
  }
  void count_pack(SavedChoice choice, bool hooks) {
    if (choice == SavedChoice::kRecompute || again_) {
      ++counts_.saved;
    } else {
      ++(choice == SavedChoice::kOffload && hooks ? counts_.passed_on : counts_.kept);
    }
  }
  void run_again(const Run& run) {
    ++counts_.recomputes;
    counts_.stopped_early += run.segment->early_stop ? 1 : 0;
    std::size_t last = run.items.size();
    while (run.segment->early_stop && !run.items[last - 1].held) --last;
    again_ = true;
    for (std::size_t i = 0; i < last; ++i) run_item(run.items[i]);
    again_ = false;
    // Inner segments whose inputs were being saved when the recompute stopped have begun, so they
    // count.
    for (std::size_t i = last; i < run.items.size(); ++i) {
      if (run.items[i].segment && i - run.items[i].inputs < last) ++counts_.segments;
    }
  }

  // Recomputes each inner segment, and then this one, once in every task that needs it. Returns the
  // tasks that needed this one.
  GraphTasks run_again_where_needed(const Run& run) {
    GraphTasks tasks;
    for (std::size_t i = 0; i < run.items.size(); ++i) {
      const Item& item = run.items[i];
      if (item.held) tasks.insert(item.needed_in.begin(), item.needed_in.end());
      if (!item.segment) continue;
      const GraphTasks inner = run_again_where_needed(*item.segment);
      for (std::size_t input = i - item.inputs; input < i; ++input) {
        if (run.items[input].held) tasks.insert(inner.begin(), inner.end());
      }
    }
    for (std::size_t task = 0; run.segment && task < tasks.size(); ++task) run_again(run);
    return tasks;
  }

  const Program& program_;
  const std::set<std::string>& kept_;
  const std::set<const Op*> written_;
  RecomputeCounts counts_;
  bool again_ = false;    // a recompute is running
  bool refused_ = false;  // in this call of main
  // These two belong to the current call of main.
  std::vector<GraphTasks> needs_;
  std::size_t packs_ = 0;
};

}  // namespace

RecomputeCounts expected_counts(const Program& program, const SegmentPlan* plan,
                                const std::set<std::string>& kept) {
  return RecomputeModel(program, plan, kept).counts();
}

std::set<std::string> written_later(const Program& program) {
  std::set<std::string> names;
  for (const Op* op : ops_written_later(program)) names.insert(op->name);
  return names;
}

std::string miscounted(const RecomputeCounts& expected, const CheckpointStatistics& counted) {
  const auto differs = [](const char* what, std::int64_t found, std::int64_t must) {
    return std::string(what) + " is " + std::to_string(found) + ", not " + std::to_string(must);
  };
  if (counted.segments != expected.segments) {
    return differs("segments", counted.segments, expected.segments);
  }
  if (counted.recomputes != expected.recomputes) {
    return differs("recomputes", counted.recomputes, expected.recomputes);
  }
  if (counted.stopped_early != expected.stopped_early) {
    return differs("stopped_early", counted.stopped_early, expected.stopped_early);
  }
  if (counted.alive != 0) return differs("alive", counted.alive, 0);
  if (!expected.packs_known) return "";
  if (counted.saved != expected.saved) return differs("saved", counted.saved, expected.saved);
  if (counted.kept != expected.kept) return differs("kept", counted.kept, expected.kept);
  if (counted.passed_on == expected.passed_on) return "";
  return differs("passed_on", counted.passed_on, expected.passed_on);
}

std::string miscounted(const OpCounts& expected, const OpCounts& counted) {
  for (const auto& [op, times] : expected) {
    const auto found = counted.find(op);
    const std::int64_t ran = found == counted.end() ? 0 : found->second;
    if (ran == times) continue;
    std::string words = op;
    words.append(" ran ").append(std::to_string(ran));
    return words.append(" times, not ").append(std::to_string(times));
  }
  return "";
}

}  // namespace ferry::verify
