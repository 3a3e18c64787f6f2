// How often each op of a program runs, worked out from the text of the program alone: the rules of
// nesting (shared/checkpoint.h) for runs in which every call of main goes backward once.
//
// For each segment it lists what matters, in order: ops, packs, segments. A segment is run again
// where a tensor that it recomputes is needed, which is the input of a node that backward reaches,
// or of a segment in it that runs again. It then runs up to the last tensor that it recomputes, or
// to its end; the segments that it meets run as in forward.
//
// Not modelled: reentrant segments, backwards inside forward, failures, choices of a plan for
// segments that bodies call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/program.h"
#include "shared/checkpoint_options.h"
#include "sim/machine.h"

namespace ferry::test {

using OpCounts = std::map<std::string, std::int64_t>;

// Runs of kernels by name.
class OpCounter final : public sim::StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kKernel) ++counts[std::string(op.name)];
  }
  OpCounts counts;
};

class RecomputeModel {
 public:
  // `plan`: of each call of main; null: none.
  RecomputeModel(const Program& program, const SegmentPlan* plan) : program_(program) {
    std::map<Slot, int> backwards;
    const std::vector<Statement>& main = program.codes[program.main].statements;
    for (const Statement& statement : main) {
      if (const auto* backward = std::get_if<Backward>(&statement.action)) {
        for (const Slot root : backward->roots) ++backwards[root];
      }
    }
    for (const Statement& statement : main) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call) continue;
      Run top;
      Cursor cursor{plan};
      add_call(top, *call, cursor, false);
      run_fully(top);
      tasks_ = call->out.empty() ? 0 : backwards[call->out.front()];
      recompute_needed(top);
    }
  }
  const OpCounts& counts() const { return counts_; }

 private:
  struct Run;
  // An op, a pack, or a segment.
  struct Item {
    const Op* op = nullptr;
    std::unique_ptr<Run> segment = nullptr;
    std::size_t inputs = 0;  // of the segment: the items before it are their packs
    bool held = false;       // a pack that is recomputed
    bool reached = false;    // by backward
  };
  // Of a segment's code and of the plain calls in it; or of a call of main.
  struct Run {
    const Call* segment = nullptr;
    const SegmentPlan* plan = nullptr;
    std::vector<Item> items;
    std::size_t packs = 0;
  };
  // Where in a plan the next checkpoint is.
  struct Cursor {
    const SegmentPlan* plan = nullptr;
    std::size_t next = 0;
  };

  void add_call(Run& run, const Call& call, Cursor& cursor, bool excluded) {
    const Code& code = program_.codes[call.code];
    if (call.recompute != Recompute::kCheckpoint) return add_code(run, code, cursor);
    SegmentPlan plain;
    plain.checkpoint = plain.unlisted = false;
    const SegmentPlan* plan = nullptr;
    if (cursor.plan && cursor.next < cursor.plan->segments.size()) {
      plan = &cursor.plan->segments[cursor.next++];
    } else if (cursor.plan && !cursor.plan->unlisted) {
      plan = &plain;
    }
    Cursor inside{plan};
    if (plan && !plan->checkpoint) return add_code(run, code, inside);
    const std::size_t first = run.items.size();
    for (std::size_t i = 0; i < call.in.size() && !excluded; ++i) add_pack(run, false);
    Item item;
    item.segment = std::make_unique<Run>();
    item.segment->segment = &call;
    item.segment->plan = plan;
    item.inputs = run.items.size() - first;
    add_code(*item.segment, code, inside);
    run.items.push_back(std::move(item));
  }

  void add_code(Run& run, const Code& code, Cursor& cursor) {
    std::map<std::uint32_t, bool> reached;  // by node
    bool excluded = false;
    const auto add_packs = [&](std::uint32_t node, std::size_t count) {
      for (std::size_t i = 0; i < count && !excluded; ++i) add_pack(run, reached[node]);
    };
    for (const Statement& statement : code.statements) {
      const Action& action = statement.action;
      if (const auto* op = std::get_if<Op>(&action)) {
        run.items.emplace_back().op = op;
      } else if (const auto* make = std::get_if<MakeNode>(&action)) {
        reached[make->id] = leads_on(code, *make);
        add_packs(make->id, make->saved.size());
      } else if (const auto* save = std::get_if<Save>(&action)) {
        add_packs(save->node, save->slots.size());
      } else if (const auto* exclude = std::get_if<Exclude>(&action)) {
        excluded = exclude->begin;
      } else if (const auto* call = std::get_if<Call>(&action)) {
        add_call(run, *call, cursor, excluded);
      }
    }
  }

  static void add_pack(Run& run, bool reached) {
    const std::size_t ordinal = run.packs++;
    Item& item = run.items.emplace_back();
    item.reached = reached;
    item.held = run.segment && (!run.plan || ordinal >= run.plan->choices.size() ||
                                run.plan->choices[ordinal] == SavedChoice::kRecompute);
  }

  // Whether something further is made of an output of the node.
  static bool leads_on(const Code& code, const MakeNode& make) {
    const auto among = [&make](const std::vector<Slot>& slots) {
      return std::any_of(slots.begin(), slots.end(), [&make](Slot slot) {
        return std::find(make.out.begin(), make.out.end(), slot) != make.out.end();
      });
    };
    return among(code.results) ||
           std::any_of(code.statements.begin(), code.statements.end(), [&](const Statement& each) {
             const auto* other = std::get_if<MakeNode>(&each.action);
             const auto* call = std::get_if<Call>(&each.action);
             return (other && among(other->in)) || (call && among(call->in));
           });
  }

  void run_item(const Item& item) {
    if (item.op) ++counts_[item.op->name];
    if (item.segment) run_fully(*item.segment);
  }
  void run_fully(const Run& run) {
    for (const Item& item : run.items) run_item(item);
  }
  void run_again(const Run& run) {
    std::size_t last = run.items.size();
    while (run.segment->early_stop && !run.items[last - 1].held) --last;
    for (std::size_t i = 0; i < last; ++i) run_item(run.items[i]);
  }

  // Runs each segment in it, and itself, as often as backwards need it; whether they do.
  bool recompute_needed(const Run& run) {
    bool needed = false;
    for (std::size_t i = 0; i < run.items.size(); ++i) {
      const Item& item = run.items[i];
      needed |= item.held && item.reached;
      if (!item.segment || !recompute_needed(*item.segment)) continue;
      for (std::size_t input = i - item.inputs; input < i; ++input) {
        needed |= run.items[input].held;
      }
    }
    for (int task = 0; needed && run.segment && task < tasks_; ++task) run_again(run);
    return needed;
  }

  const Program& program_;
  OpCounts counts_;
  int tasks_ = 0;
};

}  // namespace ferry::test
