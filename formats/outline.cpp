#include "formats/outline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "formats/statements.h"

namespace ferry {
namespace {

// How a slot of the frame is used inside a run and around it.
struct RunUse {
  bool assigned_before = false;
  bool tensor_inside = false;
  bool edge_inside = false;
  bool read_inside = false;
  bool freed_inside = false;
  bool needed_after = false;  // read or freed after the run

  bool assigned_inside() const { return tensor_inside || edge_inside; }
  bool handed_in() const { return assigned_before && (read_inside || edge_inside); }
  bool handed_out() const { return assigned_inside() && needed_after; }
};

// Turns runs of one code into codes of their own, and replaces each run by a call. It goes through
// the statements from the last to the first. So when it comes to a run, it knows what comes after
// the run, and it reads each statement only once.
class Cuts {
 public:
  Cuts(std::size_t globals, Code& code);
  // The run must lie before all runs that were cut already. Throws if it cannot be a segment; then
  // the code is not usable.
  Code cut(const ModuleRun& run, CodeId id);
  void finish();

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("module " + run_->module + " of line " + std::to_string(line()) +
                                " cannot be a segment: " + why);
  }
  std::uint32_t line() const { return code_.statements[run_->begin].line; }

  bool is_in_frame(Slot slot) const { return slot != kNoSlot && slot >= globals_; }
  void take_after(std::size_t begin);
  void put_after(Statement statement);
  void take_uses();
  void check_nodes() const;
  void hand_in(Code& segment, Call& call);
  void take_out(Code& segment);
  void rename_after(const std::map<Slot, Slot>& names);
  void adjust(When& when, std::size_t at) const;

  struct Done {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t with = 0;  // number of statements that replace it
  };
  struct SavedAfter {
    std::size_t at = 0;  // index in after_
    std::uint32_t line = 0;
  };

  const Slot globals_;
  Code& code_;
  std::vector<std::size_t> assigned_at_;  // for each slot: its first assignment
  std::vector<Slot> fresh_before_;        // for each statement: a number above all slots before it
  std::size_t left_;                      // statements that were not taken yet
  Statements after_;                // new statements for those that were taken, last one first
  std::vector<bool> needed_after_;  // for each slot: true if after_ names it
  Slot fresh_after_;                // a number above all slots in after_
  std::map<std::uint32_t, SavedAfter> saves_after_;  // for each node: its first Save in after_
  std::vector<Done> done_;
  // These are for the run that is being cut.
  const ModuleRun* run_ = nullptr;
  std::map<Slot, RunUse> uses_;
  Slot fresh_ = 0;  // a number above all slots of the code
};

Cuts::Cuts(std::size_t globals, Code& code)
    : globals_(static_cast<Slot>(globals)),
      code_(code),
      left_(code.statements.size()),
      fresh_after_(globals_) {
  Slot above = globals_;
  const auto see = [&](Slot slot, std::size_t at, bool assigns) {
    if (!is_in_frame(slot)) return;
    above = std::max(above, slot + 1);
    if (assigned_at_.size() < above) assigned_at_.resize(above, kNever);
    if (assigns) assigned_at_[slot] = std::min(assigned_at_[slot], at);
  };
  for (const Slot slot : code.arguments) see(slot, 0, true);
  // An argument is assigned before the first statement.
  for (std::size_t i = 0; i < code.statements.size(); ++i) {
    fresh_before_.push_back(above);
    for_each_slot(std::as_const(code.statements[i].action), [&](Slot slot, Role role) {
      see(slot, i + 1, role == Role::kTensor || role == Role::kEdge);
    });
  }
  fresh_before_.push_back(above);
  for (const Slot slot : code.results) see(slot, kNever, false);
  needed_after_.resize(assigned_at_.size(), false);
  for (const Slot slot : code.results) {
    if (!is_in_frame(slot)) continue;
    needed_after_[slot] = true;
    fresh_after_ = std::max(fresh_after_, slot + 1);
  }
}

void Cuts::put_after(Statement statement) {
  for_each_slot(std::as_const(statement.action), [&](Slot slot, Role) {
    if (!is_in_frame(slot)) return;
    if (needed_after_.size() <= slot) needed_after_.resize(slot + std::size_t{1}, false);
    needed_after_[slot] = true;
    fresh_after_ = std::max(fresh_after_, slot + 1);
  });
  if (const auto* save = std::get_if<Save>(&statement.action)) {
    saves_after_[save->node] = {after_.size(), statement.line};
  }
  after_.push_back(std::move(statement));
}

// Moves the statements from `begin` on that are left to after_.
void Cuts::take_after(std::size_t begin) {
  for (; left_ > begin; --left_) {
    Statement& statement = code_.statements[left_ - 1];
    if (auto* when = std::get_if<When>(&statement.action)) adjust(*when, left_ - 1);
    put_after(std::move(statement));
  }
}

// Adjusts the count of a When to the runs in it that were replaced.
void Cuts::adjust(When& when, std::size_t at) const {
  const std::size_t last = at + when.count;
  for (const Done& cut : done_) {
    if (cut.begin <= at || last + 1 < cut.end) continue;
    when.count += static_cast<std::uint32_t>(cut.with);
    when.count -= static_cast<std::uint32_t>(cut.end - cut.begin);
  }
}

void Cuts::finish() {
  take_after(0);
  code_.statements.assign(std::make_move_iterator(after_.rbegin()),
                          std::make_move_iterator(after_.rend()));
}

void Cuts::take_uses() {
  uses_.clear();
  fresh_ = std::max(fresh_after_, fresh_before_[run_->begin]);
  for (std::size_t i = run_->begin; i < run_->end; ++i) {
    for_each_slot(std::as_const(code_.statements[i].action), [&](Slot slot, Role role) {
      if (!is_in_frame(slot)) return;
      fresh_ = std::max(fresh_, slot + 1);
      RunUse& use = uses_[slot];
      use.read_inside |= role == Role::kRead;
      use.tensor_inside |= role == Role::kTensor;
      use.edge_inside |= role == Role::kEdge;
      use.freed_inside |= role == Role::kFree;
    });
  }
  for (auto& [slot, use] : uses_) {
    use.assigned_before = assigned_at_[slot] <= run_->begin;
    use.needed_after = needed_after_[slot];
    if (use.assigned_before && use.tensor_inside) {
      refuse("slot " + std::to_string(slot) + " has its edge from outside and its tensor inside");
    }
  }
}

// A node's number is valid in one frame (one call of a code). The run of the module becomes a code
// of its own, so either all uses of a node are inside this run, or all are outside.
void Cuts::check_nodes() const {
  std::set<std::uint32_t> inside;
  const auto part = [this](std::uint32_t line, std::uint32_t node, const char* where) {
    refuse("line " + std::to_string(line) + " saves for node " + std::to_string(node) + where);
  };
  for (std::size_t i = run_->begin; i < run_->end; ++i) {
    const auto* make = std::get_if<MakeNode>(&code_.statements[i].action);
    if (make) inside.insert(make->id);
  }
  for (std::size_t i = run_->begin; i < run_->end; ++i) {
    const auto* save = std::get_if<Save>(&code_.statements[i].action);
    if (save && !inside.contains(save->node)) {
      part(code_.statements[i].line, save->node, ", made outside");
    }
  }
  std::optional<std::uint32_t> first;  // after_ begins with the last statement
  for (const std::uint32_t node : inside) {
    const auto save = saves_after_.find(node);
    if (save == saves_after_.end()) continue;
    if (!first || saves_after_.at(*first).at < save->second.at) first = node;
  }
  if (first) part(saves_after_.at(*first).line, *first, ", made inside");
}

Code Cuts::cut(const ModuleRun& run, CodeId id) {
  take_after(run.end);
  run_ = &run;
  take_uses();
  check_nodes();
  const std::uint32_t at = line();
  Code segment{CodeKind::kSegment, run.module, {}, {}, {}, {}, at};
  Call call{.code = id, .in = {}, .out = {}, .recompute = Recompute::kCheckpoint};
  Free free;
  std::map<Slot, Slot> names;  // new numbers of slots that the segment returns
  hand_in(segment, call);
  for (const auto& [slot, use] : uses_) {
    if (use.assigned_before && use.freed_inside) free.slots.push_back(slot);
    if (!use.handed_out()) continue;
    segment.results.push_back(slot);
    call.out.push_back(slot);
    if (!use.handed_in()) continue;
    // The slot got another edge inside. A slot is assigned once, so it returns under a new number.
    call.out.back() = names[slot] = fresh_++;
    free.slots.push_back(slot);
  }
  take_out(segment);
  rename_after(names);
  left_ = run.begin;
  done_.push_back({run.begin, run.end, free.slots.empty() ? std::size_t{1} : std::size_t{2}});
  if (!free.slots.empty()) put_after({std::move(free), at});
  put_after({std::move(call), at});
  return segment;
}

// Arguments that the marker names come first; all others are captured. Inside, globals are read
// directly. So the argument of a global, or a repeated argument, gets a slot that is never read.
void Cuts::hand_in(Code& segment, Call& call) {
  const auto& arguments = module_marker(code_.statements[run_->begin])->arguments;
  std::set<Slot> named;
  for (const Slot slot : arguments.value_or(std::vector<Slot>())) {
    const bool reads_it = slot >= globals_ && named.insert(slot).second;
    segment.arguments.push_back(reads_it ? slot : fresh_++);
    call.in.push_back(slot);
  }
  for (const auto& [slot, use] : uses_) {
    if (!use.handed_in() || named.contains(slot)) continue;
    segment.arguments.push_back(slot);
    call.in.push_back(slot);
    if (arguments) ++call.captured;
  }
}

// Takes the run's statements and renumbers their slots in their own frame, the arguments first. If
// the run frees a slot that is not its argument, the caller frees it instead.
void Cuts::take_out(Code& segment) {
  FrameSlots rename(globals_);
  for (Slot& slot : segment.arguments) rename(slot);
  const auto first = code_.statements.begin();
  segment.statements.assign(
      std::make_move_iterator(first + static_cast<std::ptrdiff_t>(run_->begin)),
      std::make_move_iterator(first + static_cast<std::ptrdiff_t>(run_->end)));
  erase_frees(segment.statements, 0, [this](Slot slot) {
    const RunUse& use = uses_.at(slot);
    return use.assigned_before && !use.handed_in();
  });
  for (Statement& statement : segment.statements) {
    for_each_slot(statement.action, [&](Slot& slot, Role) { rename(slot); });
  }
  for (Slot& slot : segment.results) rename(slot);
}

// Renames the returned slots in the statements after the run.
void Cuts::rename_after(const std::map<Slot, Slot>& names) {
  if (names.empty()) return;
  const auto rename = [&](Slot& slot) {
    const auto name = names.find(slot);
    if (name != names.end()) slot = name->second;
  };
  for (Slot& slot : code_.results) rename(slot);
  for (Statement& statement : after_) {
    for_each_slot(statement.action, [&](Slot& slot, Role) { rename(slot); });
  }
  needed_after_.resize(std::max<std::size_t>(needed_after_.size(), fresh_), false);
  for (const auto& [slot, name] : names) {
    needed_after_[slot] = false;
    needed_after_[name] = true;
  }
}

}  // namespace

Program outline(const Program& program, std::span<const std::string> modules) {
  const std::optional<CodeId> forward = forward_code(program);
  std::set<std::string> missing(modules.begin(), modules.end());
  std::vector<ModuleRun> chosen;
  if (forward) {
    const Statements& statements = program.codes[*forward].statements;
    const std::set<std::string> wanted = missing;
    for (ModuleRun& run : module_runs(statements)) {
      if (!wanted.contains(run.module)) continue;
      missing.erase(run.module);
      while (!chosen.empty() && chosen.back().begin >= run.begin) chosen.pop_back();  // inside it
      chosen.push_back(std::move(run));
    }
    for (const Statement& statement : statements) {
      const Module* module = module_marker(statement);
      if (!module || !missing.contains(module->name)) continue;
      throw std::invalid_argument("module " + module->name + " of line " +
                                  std::to_string(statement.line) +
                                  " cannot be a segment: it is never left");
    }
  }
  if (!missing.empty()) {
    throw std::invalid_argument("there is no module " + *missing.begin() +
                                " in the program's forward");
  }
  Program result = program;
  const auto first = static_cast<CodeId>(program.codes.size());
  result.codes.resize(first + chosen.size());
  if (chosen.empty()) return result;
  Cuts cuts(program.globals.size(), result.codes[*forward]);
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const CodeId id = first + static_cast<CodeId>(i);
    result.codes[id] = cuts.cut(chosen[i], id);
  }
  cuts.finish();
  return result;
}

}  // namespace ferry
