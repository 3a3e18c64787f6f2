#include "formats/replicas.h"

#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "formats/effects.h"
#include "formats/statements.h"

namespace ferry {
namespace {

// Calls `see` with a reference to each slot of a code.
template <class See>
void for_each_slot_of(Code& code, See see) {
  for (auto* slots : {&code.arguments, &code.saved, &code.results}) {
    for (Slot& slot : *slots) see(slot);
  }
  for (Statement& statement : code.statements) {
    for_each_slot(statement.action, [&](Slot& slot, Role) { see(slot); });
  }
}

// Calls `see` with each code that a code runs; with a reference if the code is mutable.
template <class AnyCode, class See>
void for_each_code_of(AnyCode& code, See see) {
  for (auto& statement : code.statements) {
    if (auto* call = std::get_if<Call>(&statement.action)) see(call->code);
    if (auto* make = std::get_if<MakeNode>(&statement.action)) see(make->body);
  }
}

using GlobalNames = std::map<Slot, Slot>;  // for each global: its copy for a stage

class Replication {
 public:
  Replication(Program& program, std::span<const CodeId> stages)
      : program_(program), stages_(stages), globals_(static_cast<Slot>(program.globals.size())) {
    for (Slot global = 0; global < globals_; ++global) {
      const Slot alias = program.globals[global].alias;  // an earlier global
      storages_.push_back(alias == kNoSlot ? global : storages_[alias]);
    }
    for (const CodeId stage : stages) {
      std::set<CodeId> codes;
      reach(stage, codes);
      codes_.push_back(std::move(codes));
    }
    globals_of_.resize(program.codes.size());
  }

  Replicas make() {
    take_uses();
    refuse_writes();
    add_globals();
    make_room();
    rewrite();
    return std::move(replicas_);
  }

 private:
  Slot storage_of(Slot global) const { return storages_[global]; }

  void reach(CodeId code, std::set<CodeId>& codes) const {
    if (!codes.insert(code).second) return;
    for_each_code_of(std::as_const(program_.codes[code]),
                     [&](CodeId other) { reach(other, codes); });
  }
  const std::set<Slot>& globals_of(CodeId code);  // named by the code, or by codes that it runs
  void take_uses();
  void refuse_writes() const;
  void add_globals();
  void make_room();
  void rewrite();

  Program& program_;
  const std::span<const CodeId> stages_;
  const Slot globals_;                      // number of globals of the original program
  std::vector<Slot> storages_;              // for each global: the one that owns its storage
  std::vector<std::set<CodeId>> codes_;     // for each stage
  std::vector<std::set<Slot>> uses_;        // for each stage: globals, and owners of their storages
  std::vector<GlobalNames> names_;          // for each stage
  std::vector<std::set<Slot>> globals_of_;  // for each code; empty: not known yet, or none
  Replicas replicas_;
};

const std::set<Slot>& Replication::globals_of(CodeId code) {
  std::set<Slot>& found = globals_of_[code];
  if (!found.empty()) return found;
  std::set<CodeId> codes;
  reach(code, codes);
  for (const CodeId each : codes) {
    for_each_slot_of(program_.codes[each], [&](Slot slot) {
      if (slot < globals_) found.insert(slot);
    });
  }
  return found;
}

void Replication::take_uses() {
  for (const CodeId stage : stages_) {
    std::set<Slot> uses = globals_of(stage);
    for (const Slot global : globals_of(stage)) uses.insert(storage_of(global));
    uses_.push_back(std::move(uses));
  }
  std::vector<std::uint32_t> home(globals_, 0);  // for each storage: its first stage
  for (std::size_t stage = stages_.size(); stage-- > 0;) {
    for (const Slot global : uses_[stage]) {
      home[storage_of(global)] = static_cast<std::uint32_t>(stage);
    }
  }
  for (Slot global = 0; global < globals_; ++global) {
    replicas_.stage_of.push_back(home[storage_of(global)]);
  }
  replicas_.replica_of.assign(globals_, kNoSlot);
}

void Replication::refuse_writes() const {
  EffectsOf effects_of(program_);
  for (const std::set<CodeId>& codes : codes_) {
    for (const CodeId code : codes) {
      for (const auto& [global, line] : effects_of(code).written_globals) {
        std::size_t users = 0;
        for (const auto& uses : uses_) users += uses.contains(storage_of(global));
        if (users < 2) continue;
        throw std::invalid_argument("line " + std::to_string(line) + " writes " +
                                    program_.globals[global].name +
                                    ", which several stages use: each would have its own copy");
      }
    }
  }
}

void Replication::add_globals() {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    GlobalNames& names = names_.emplace_back();
    for (const Slot global : uses_[stage]) {
      if (replicas_.stage_of[global] == stage) continue;
      Global copy = program_.globals[global];
      copy.name += "@" + std::to_string(stage);
      if (copy.alias != kNoSlot) copy.alias = names.at(storage_of(global));
      names[global] = static_cast<Slot>(program_.globals.size());
      program_.globals.push_back(std::move(copy));
      replicas_.stage_of.push_back(static_cast<std::uint32_t>(stage));
      replicas_.replica_of.push_back(global);
    }
  }
}

// Renumbers the slots of all frames, so that they come after the new globals.
void Replication::make_room() {
  const Slot more = static_cast<Slot>(program_.globals.size()) - globals_;
  for (Code& code : program_.codes) {
    for_each_slot_of(code, [&](Slot& slot) {
      if (slot >= globals_ && slot != kNoSlot) slot += more;
    });
  }
}

// Stages share a code if it names the same globals in all of them.
void Replication::rewrite() {
  const std::vector<Code> originals = program_.codes;
  std::map<std::pair<CodeId, GlobalNames>, CodeId> known;
  std::set<CodeId> taken;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    std::map<CodeId, CodeId> ids;
    std::vector<std::pair<CodeId, CodeId>> fresh;
    for (const CodeId code : codes_[stage]) {
      GlobalNames names;
      for (const Slot global : globals_of(code)) {
        const auto name = names_[stage].find(global);
        if (name != names_[stage].end()) names.insert(*name);
      }
      const bool first = taken.insert(code).second;
      const auto next = static_cast<CodeId>(program_.codes.size());
      const auto [at, is_new] = known.try_emplace({code, std::move(names)}, first ? code : next);
      ids[code] = at->second;
      if (is_new) fresh.emplace_back(code, at->second);
      if (is_new && !first) program_.codes.push_back(originals[code]);
    }
    for (const auto& [from, to] : fresh) {
      Code& code = program_.codes[to] = originals[from];
      for_each_slot_of(code, [&](Slot& slot) {
        const auto name = names_[stage].find(slot);
        if (name != names_[stage].end()) slot = name->second;
      });
      for_each_code_of(code, [&](CodeId& id) { id = ids.at(id); });
    }
  }
}

}  // namespace

Replicas replicate_globals(Program& program, std::span<const CodeId> stages) {
  return Replication(program, stages).make();
}

}  // namespace ferry
