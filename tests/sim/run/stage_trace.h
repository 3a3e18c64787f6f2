// What a step computes from what, and how long its values should live once it is in stages: models
// to compare cut_into_stages with, made without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/program.h"
#include "formats/stages.h"
#include "formats/statements.h"

namespace ferry::test {

// Runs a program's codes with names for values: a value is the line that made it, and where in that
// line. Statements keep their lines when they move, so equal steps have equal traces.
class Tracer {
 public:
  explicit Tracer(const Program& program) : program_(program) {}

  std::vector<std::string> take() {
    run(program_.main, {}, "");
    return std::move(trace_);
  }

 private:
  struct Value {
    std::string tensor;
    std::string edge;
    std::string text() const { return "(" + tensor + "|" + edge + ")"; }
  };
  using Values = std::vector<Value>;

  bool is_global(Slot slot) const { return slot < program_.globals.size(); }
  std::string global(Slot slot) const {
    const std::string& name = program_.globals[slot].name;
    return name.substr(0, name.find('@'));
  }

  // What a code says, but for the numbers of its globals and codes.
  std::string signature(CodeId id) {
    if (!open_.insert(id).second) return "again";
    const Code& code = program_.codes[id];
    std::string text = code.name;
    const auto add = [&](Slot slot) {
      text += slot == kNoSlot   ? " none"
              : is_global(slot) ? " " + global(slot)
                                : " " + std::to_string(slot - program_.globals.size());
    };
    for (const Slot slot : code.results) add(slot);
    for (const Statement& statement : code.statements) {
      text += " " + std::to_string(statement.action.index());
      for_each_slot(statement.action, [&](Slot slot, Role) { add(slot); });
      if (const auto* make = std::get_if<MakeNode>(&statement.action)) {
        text += "{" + signature(make->body) + "}";
      }
      if (const auto* call = std::get_if<Call>(&statement.action)) {
        text += "{" + signature(call->code) + "}";
      }
    }
    open_.erase(id);
    return text;
  }

  Values run(CodeId id, const Values& arguments, const std::string& where) {
    const Code& code = program_.codes[id];
    std::map<Slot, Value> slots;
    for (std::size_t i = 0; i < arguments.size(); ++i) slots[code.arguments[i]] = arguments[i];
    const auto at = [&](Slot slot) {
      return is_global(slot) ? Value{global(slot), global(slot)} : slots[slot];
    };
    const auto all = [&](const std::vector<Slot>& list) {
      std::string text;
      for (const Slot slot : list) text += at(slot).text();
      return text;
    };
    for (const Statement& statement : code.statements) {
      const std::string name = where + "." + std::to_string(statement.line);
      const Action& action = statement.action;
      if (const auto* op = std::get_if<Op>(&action)) {
        trace_.push_back(name + op->name + all(op->in));
        for (const Slot slot : op->out)
          slots[slot].tensor = name + "#" + std::to_string(slot - op->out[0]);
      } else if (const auto* view = std::get_if<View>(&action)) {
        slots[view->out].tensor = at(view->of).tensor + "~" + name;
      } else if (const auto* make = std::get_if<MakeNode>(&action)) {
        trace_.push_back(name + make->name + all(make->in) + all(make->saved) +
                         signature(make->body));
        for (const Slot slot : make->out)
          slots[slot].edge = name + "#" + std::to_string(slot - make->out[0]);
      } else if (const auto* save = std::get_if<Save>(&action)) {
        trace_.push_back(name + "save" + std::to_string(save->node) + all(save->slots));
      } else if (const auto* backward = std::get_if<Backward>(&action)) {
        trace_.push_back("backward" + all(backward->roots) + all(backward->inputs));
        for (const Slot slot : backward->out) slots[slot] = {name, name};
      } else if (const auto* call = std::get_if<Call>(&action)) {
        Values in;
        for (const Slot slot : call->in) in.push_back(at(slot));
        const bool from_main = id == program_.main;  // the line of a stage's call says nothing
        const Values out = run(call->code, in, from_main ? "" : name);
        for (std::size_t i = 0; i < out.size(); ++i) slots[call->out[i]] = out[i];
      }
    }
    Values results;
    for (const Slot slot : code.results) results.push_back(at(slot));
    return results;
  }

  const Program& program_;
  std::vector<std::string> trace_;
  std::set<CodeId> open_;
};

inline std::vector<std::string> trace(const Program& program) { return Tracer(program).take(); }

// The globals that a code names, and all that it runs.
inline void take_globals(const Program& program, CodeId id, std::set<CodeId>& seen,
                         std::set<Slot>& globals) {
  if (!seen.insert(id).second) return;
  for (const Statement& statement : program.codes[id].statements) {
    for_each_slot(statement.action, [&](Slot slot, Role) {
      if (slot < program.globals.size()) globals.insert(slot);
    });
    if (const auto* make = std::get_if<MakeNode>(&statement.action)) {
      take_globals(program, make->body, seen, globals);
    }
    if (const auto* call = std::get_if<Call>(&statement.action)) {
      take_globals(program, call->code, seen, globals);
    }
  }
}

inline bool has_globals_of_its_own(const StagedProgram& staged) {
  for (std::size_t stage = 0; stage < staged.stages.size(); ++stage) {
    std::set<CodeId> seen;
    std::set<Slot> globals;
    take_globals(staged.program, staged.stages[stage].code, seen, globals);
    for (const Slot global : globals) {
      if (staged.stage_of_global[global] != stage) return false;
    }
  }
  return true;
}

// The program, uncut, with frees where the stages' values would die: what a stage makes for itself
// at its end, if nothing frees it there; what is handed on at the end of the last stage to read it.
inline Program with_lifetimes_of_stages(Program program,
                                        const std::vector<std::size_t>& first_units) {
  struct Life {
    std::size_t made = 0;
    std::size_t read = 0;
    std::optional<std::size_t> freed;
  };
  const std::vector<StageUnit> units = stage_units(program);
  Code& forward =
      program.codes[std::get<Call>(program.codes[program.main].statements[0].action).code];
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < first_units.size(); ++i) ends.push_back(units[first_units[i]].begin);
  ends.push_back(forward.statements.size());
  std::map<Slot, Life> lives;
  for (std::size_t stage = 0, i = 0; stage < ends.size(); ++stage) {
    for (; i < ends[stage]; ++i) {
      for_each_slot(std::as_const(forward.statements[i].action), [&](Slot slot, Role role) {
        if (slot < program.globals.size()) return;
        if (role == Role::kFree) {
          lives[slot].freed = stage;
        } else {
          const bool fresh = !lives.contains(slot);
          Life& life = lives[slot];
          if (fresh) life.made = stage;
          life.read = stage;
        }
      });
    }
  }
  for (const Slot slot : forward.results) lives.erase(slot);
  const auto stays = [](const Life& life) {
    return life.made == life.read && life.freed == life.made;
  };
  std::vector<Free> frees(ends.size());
  for (const auto& [slot, life] : lives) {
    if (!stays(life)) frees[life.read].slots.push_back(slot);
  }
  for (Statement& statement : forward.statements) {
    auto* free = std::get_if<Free>(&statement.action);
    if (!free) continue;
    std::erase_if(free->slots, [&](Slot slot) { return !stays(lives.at(slot)); });
  }
  for (std::size_t stage = ends.size(); stage-- > 0;) {
    const auto at = forward.statements.begin() + static_cast<std::ptrdiff_t>(ends[stage]);
    forward.statements.insert(at, {frees[stage], 0});
  }
  return program;
}

}  // namespace ferry::test
