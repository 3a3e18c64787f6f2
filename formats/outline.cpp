#include "formats/outline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "formats/statements.h"

namespace ferry {
namespace {

// The uses of a slot of the frame within a run, and around it.
struct Use {
  bool assigned_before = false;
  bool tensor_inside = false;
  bool edge_inside = false;
  bool read_inside = false;
  bool freed_inside = false;
  bool needed_after = false;  // or freed there, so it lived until then

  bool assigned_inside() const { return tensor_inside || edge_inside; }
  bool handed_in() const { return assigned_before && (read_inside || edge_inside); }
  bool handed_out() const { return assigned_inside() && needed_after; }
};

// Turns one run into a code, and puts a call in its place.
class Cut {
 public:
  Cut(std::size_t globals, Code& code, const ModuleRun& run)
      : globals_(static_cast<Slot>(globals)), code_(code), run_(run) {
    take_uses();
    check_nodes();
  }

  Code make(CodeId id);

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("module " + run_.module + " of line " + std::to_string(line()) +
                                " cannot be a segment: " + why);
  }
  std::uint32_t line() const { return code_.statements[run_.begin].line; }

  void take_uses();
  void check_nodes() const;
  void hand_in(Code& segment, Call& call);
  void take_out(Code& segment);
  void rename_after(const std::map<Slot, Slot>& names);

  const Slot globals_;
  Code& code_;
  const ModuleRun& run_;
  std::map<Slot, Use> uses_;
  Slot fresh_ = 0;  // above every slot of the code
};

void Cut::take_uses() {
  fresh_ = globals_;
  const auto frame_slot = [this](Slot slot) -> Use* {
    if (slot == kNoSlot || slot < globals_) return nullptr;
    fresh_ = std::max(fresh_, slot + 1);
    return &uses_[slot];
  };
  for (const Slot slot : code_.arguments) {
    if (Use* use = frame_slot(slot)) use->assigned_before = true;
  }
  for (const Slot slot : code_.results) {
    if (Use* use = frame_slot(slot)) use->needed_after = true;
  }
  for (std::size_t i = 0; i < code_.statements.size(); ++i) {
    for_each_slot(std::as_const(code_.statements[i].action), [&](Slot slot, Role role) {
      Use* use = frame_slot(slot);
      if (!use) return;
      if (i < run_.begin) {
        use->assigned_before |= role == Role::kTensor || role == Role::kEdge;
      } else if (i < run_.end) {
        use->read_inside |= role == Role::kRead;
        use->tensor_inside |= role == Role::kTensor;
        use->edge_inside |= role == Role::kEdge;
        use->freed_inside |= role == Role::kFree;
      } else {
        use->needed_after = true;
      }
    });
  }
  for (const auto& [slot, use] : uses_) {
    if (use.assigned_before && use.tensor_inside) {
      refuse("slot " + std::to_string(slot) + " has its edge from outside and its tensor inside");
    }
  }
}

// A node's number belongs to its frame, so a cut must not part its uses.
void Cut::check_nodes() const {
  std::set<std::uint32_t> inside;
  for (std::size_t i = run_.begin; i < run_.end; ++i) {
    const auto* make = std::get_if<MakeNode>(&code_.statements[i].action);
    if (make) inside.insert(make->id);
  }
  for (std::size_t i = run_.begin; i < code_.statements.size(); ++i) {
    const auto* save = std::get_if<Save>(&code_.statements[i].action);
    if (!save || inside.contains(save->node) == (i < run_.end)) continue;
    refuse("line " + std::to_string(code_.statements[i].line) + " saves for node " +
           std::to_string(save->node) + (i < run_.end ? ", made outside" : ", made inside"));
  }
}

Code Cut::make(CodeId id) {
  const std::uint32_t at = line();
  Code segment{CodeKind::kSegment, run_.module, {}, {}, {}, {}, at};
  Call call{.code = id, .in = {}, .out = {}, .recompute = Recompute::kCheckpoint};
  Free free;
  std::map<Slot, Slot> names;  // new names of slots that the segment hands back
  hand_in(segment, call);
  for (const auto& [slot, use] : uses_) {
    if (use.assigned_before && use.freed_inside) free.slots.push_back(slot);
    if (!use.handed_out()) continue;
    segment.results.push_back(slot);
    call.out.push_back(slot);
    if (!use.handed_in()) continue;
    // It got another edge inside. A slot is assigned once, so it comes back under a new number.
    call.out.back() = names[slot] = fresh_++;
    free.slots.push_back(slot);
  }
  take_out(segment);
  rename_after(names);
  Statements with{{std::move(call), at}};
  if (!free.slots.empty()) with.push_back({std::move(free), at});
  splice(code_.statements, run_.begin, run_.end, std::move(with));
  return segment;
}

// Arguments that the marker names come first; all others are captured. A global is read
// as itself inside, and so is a repeated argument: these have slots there that nobody
// reads.
void Cut::hand_in(Code& segment, Call& call) {
  const auto& arguments = module_marker(code_.statements[run_.begin])->arguments;
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

// The run's statements, with slots of their own frame: the arguments first. The caller frees what
// the run freed without having been handed it.
void Cut::take_out(Code& segment) {
  FrameSlots rename(globals_);
  for (Slot& slot : segment.arguments) rename(slot);
  segment.statements.assign(code_.statements.begin() + static_cast<std::ptrdiff_t>(run_.begin),
                            code_.statements.begin() + static_cast<std::ptrdiff_t>(run_.end));
  erase_frees(segment.statements, 0, [this](Slot slot) {
    const Use& use = uses_.at(slot);
    return use.assigned_before && !use.handed_in();
  });
  for (Statement& statement : segment.statements) {
    for_each_slot(statement.action, [&](Slot& slot, Role) { rename(slot); });
  }
  for (Slot& slot : segment.results) rename(slot);
}

// After the run: renames the slots that came back.
void Cut::rename_after(const std::map<Slot, Slot>& names) {
  const auto rename = [&](Slot& slot) {
    const auto name = names.find(slot);
    if (name != names.end()) slot = name->second;
  };
  for (Slot& slot : code_.results) rename(slot);
  for (std::size_t i = run_.end; i < code_.statements.size(); ++i) {
    for_each_slot(code_.statements[i].action, [&](Slot& slot, Role) { rename(slot); });
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
  // Goes from last to first: a cut moves only the statements after it.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const CodeId id = first + static_cast<CodeId>(i);
    result.codes[id] = Cut(program.globals.size(), result.codes[*forward], chosen[i]).make(id);
  }
  return result;
}

}  // namespace ferry
