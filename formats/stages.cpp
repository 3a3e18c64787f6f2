#include "formats/stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "formats/effects.h"
#include "formats/microbatches.h"
#include "formats/modules.h"
#include "formats/replicas.h"
#include "formats/stage_checks.h"
#include "formats/statements.h"

namespace ferry {
namespace {

// How stages use a slot of the forward's frame.
struct StageUse {
  std::optional<std::size_t> made;  // the stage that makes it
  bool edge = false;
  std::set<std::size_t> read;
  std::vector<Slot> held;  // slots of the main code that get it as a result of the forward

  bool is_read_in(std::size_t stage) const { return read.contains(stage); }
  bool crosses() const { return !read.empty() && *read.rbegin() > *made; }
};

class Cutter {
 public:
  Cutter(const Program& program, MainStep step, std::vector<StagePiece> pieces)
      : step_(std::move(step)),
        pieces_(std::move(pieces)),
        forward_(program.codes[step_.call.code]),
        globals_(static_cast<Slot>(program.globals.size())) {
    staged_.program = program;
    take_uses();
    take_results();
  }

  StagedProgram make() {
    for (std::size_t stage = 0; stage < pieces_.size(); ++stage) make_code(stage);
    make_routes();
    make_main();
    return std::move(staged_);
  }

 private:
  Code& code(std::size_t stage) { return staged_.program.codes[staged_.stages[stage].code]; }

  void take_uses();
  void take_results();
  void make_code(std::size_t stage);
  void take_statements(std::size_t stage, Code& code);
  void make_routes();
  void make_main();

  const MainStep step_;
  const std::vector<StagePiece> pieces_;
  const Code& forward_;
  const Slot globals_;
  std::map<Slot, StageUse> uses_;
  std::vector<const Statement*> open_;                       // modules around the statement
  std::vector<std::vector<Slot>> arguments_;                 // for each stage: forward's slots
  std::vector<std::vector<std::pair<Slot, Slot>>> results_;  // (forward's slot, main's slot)
  StagedProgram staged_;
};

void Cutter::take_uses() {
  for (std::size_t stage = 0; stage < pieces_.size(); ++stage) {
    for (std::size_t i = pieces_[stage].begin; i < pieces_[stage].end; ++i) {
      const Action& action = forward_.statements[i].action;
      for_each_slot(action, [&](Slot slot, Role role) {
        if (slot < globals_) return;
        StageUse& use = uses_[slot];
        if (role == Role::kRead) use.read.insert(stage);
        if (role != Role::kTensor && role != Role::kEdge) return;
        if (use.made.value_or(stage) != stage) {
          refuse_stage(pieces_[stage],
                       "slot " + std::to_string(slot) +
                           " has a tensor or edge from an earlier stage, and line " +
                           std::to_string(forward_.statements[i].line) + " assigns it again");
        }
        use.made = stage;
        use.edge |= role == Role::kEdge ||
                    !(std::holds_alternative<Op>(action) || std::holds_alternative<View>(action));
      });
    }
  }
}

// Finds the slots that leave their stage, and their slots in the main code.
void Cutter::take_results() {
  Slot fresh = globals_;  // a number above all slots of the main code
  for (std::size_t i = 0; i < forward_.results.size(); ++i) {
    const Slot held = step_.call.out[i];
    fresh = std::max(fresh, held + 1);
    StageUse& use = uses_[forward_.results[i]];
    if (!use.made) use.made = pieces_.size() - 1;  // it is a global
    use.held.push_back(held);
  }
  arguments_.resize(pieces_.size());
  results_.resize(pieces_.size());
  for (const auto& [slot, use] : uses_) {
    for (const Slot held : use.held) results_[*use.made].emplace_back(slot, held);
    if (slot < globals_ || !use.crosses()) continue;
    if (use.held.empty()) results_[*use.made].emplace_back(slot, fresh++);
    for (const std::size_t stage : use.read) {
      if (stage > *use.made) arguments_[stage].push_back(slot);
    }
  }
}

void Cutter::make_code(std::size_t stage) {
  const StagePiece& piece = pieces_[stage];
  Code code{CodeKind::kSegment,
            forward_.name + "@" + std::to_string(stage),
            {},
            {},
            {},
            {},
            stage == 0 ? forward_.line : piece.line};
  code.arguments = arguments_[stage];
  for (const auto& [slot, main_slot] : results_[stage]) code.results.push_back(slot);
  take_statements(stage, code);
  FrameSlots rename(globals_);
  for (Slot& slot : code.arguments) rename(slot);
  for (Statement& statement : code.statements) {
    for_each_slot(statement.action, [&](Slot& slot, Role) { rename(slot); });
  }
  for (Slot& slot : code.results) rename(slot);
  std::vector<Code>& codes = staged_.program.codes;
  CodeId id = step_.call.code;  // the first stage takes the forward's place
  if (stage > 0) {
    id = static_cast<CodeId>(codes.size());
    codes.push_back(std::move(code));
  } else {
    codes[id] = std::move(code);
  }
  staged_.stages.push_back({id, piece.unit, piece.unit});
}

// Takes the statements of a stage. Modules around a cut end before it and begin again after it.
void Cutter::take_statements(std::size_t stage, Code& code) {
  const StagePiece& piece = pieces_[stage];
  for (const Statement* module : open_) {
    const Module& marker = *module_marker(*module);
    if (marker.arguments && marker.called) {
      refuse_stage(piece, "it is in the marked call of line " + std::to_string(module->line));
    }
    code.statements.push_back({Module{marker.name}, module->line});
  }
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    const Statement& statement = forward_.statements[i];
    code.statements.push_back(statement);
    const Module* module = module_marker(statement);
    if (!module) continue;
    if (module->enter) {
      open_.push_back(&statement);
    } else {
      // A Raise under a When leaves its modules open.
      while (module_marker(*open_.back())->name != module->name) open_.pop_back();
      open_.pop_back();
    }
  }
  for (std::size_t i = open_.size(); i-- > 0 && stage + 1 < pieces_.size();) {
    code.statements.push_back({Module{module_marker(*open_[i])->name, false}, open_[i]->line});
  }
  erase_frees(code.statements, 0, [&](Slot slot) {
    const StageUse& use = uses_.at(slot);
    return *use.made != stage && !use.is_read_in(stage);
  });
}

void Cutter::make_routes() {
  EffectsOf effects_of(staged_.program);
  for (std::size_t stage = 0; stage < pieces_.size(); ++stage) {
    for (std::size_t i = 0; i < arguments_[stage].size(); ++i) {
      const StageUse& use = uses_.at(arguments_[stage][i]);
      const auto& results = results_[*use.made];
      const auto at = std::find_if(results.begin(), results.end(), [&](const auto& result) {
        return result.first == arguments_[stage][i];
      });
      const auto result = static_cast<std::uint32_t>(at - results.begin());
      const bool tensor = effects_of(staged_.stages[*use.made].code).results[result].tensor;
      staged_.routes.push_back({static_cast<std::uint32_t>(*use.made), result,
                                static_cast<std::uint32_t>(stage), static_cast<std::uint32_t>(i),
                                tensor, use.edge});
    }
  }
  check_routes(staged_, pieces_);
}

void Cutter::make_main() {
  Statements& statements = staged_.program.codes[staged_.program.main].statements;
  statements.clear();
  std::map<Slot, Slot> main_slots;  // for each slot of the forward: its slot in the main code
  for (std::size_t stage = 0; stage < pieces_.size(); ++stage) {
    Call call{.code = staged_.stages[stage].code, .in = {}, .out = {}};
    Free free;
    for (const Slot slot : arguments_[stage]) {
      call.in.push_back(main_slots.at(slot));
      const StageUse& use = uses_.at(slot);
      if (*use.read.rbegin() == stage && use.held.empty()) free.slots.push_back(call.in.back());
    }
    for (const auto& [slot, main_slot] : results_[stage]) {
      call.out.push_back(main_slot);
      main_slots.try_emplace(slot, main_slot);
    }
    statements.push_back({std::move(call), step_.call_line});
    if (!free.slots.empty()) statements.push_back({std::move(free), step_.call_line});
  }
  const auto& last = results_.back();
  const auto root = std::find_if(last.begin(), last.end(), [&](const auto& result) {
    return result.second == step_.backward.roots[0];
  });
  if (root == last.end()) refuse_stage(pieces_.back(), "the loss is made before it");
  staged_.root = static_cast<std::uint32_t>(root - last.begin());
  statements.push_back({step_.backward, step_.backward_line});
}

// Throws unless the main code is a step that can be cut.
MainStep step_of(const Program& program) {
  std::optional<MainStep> step = main_step(program);
  const auto fail = [](const char* what) {
    throw std::invalid_argument(std::string("a pipeline needs a program whose main code is ") +
                                what);
  };
  if (!step) fail("one call and one backward");
  if (!step->call.in.empty()) fail("a call without arguments and a backward");
  if (step->call.recompute != Recompute::kNone) fail("a plain call and a backward");
  if (step->backward.roots.size() != 1 || !step->backward.inputs.empty()) {
    fail("a call and a backward from one loss to the parameters");
  }
  return std::move(*step);
}

}  // namespace

StagedProgram cut_into_stages(const Program& program, const std::vector<std::size_t>& first_units) {
  const MainStep step = step_of(program);
  const std::vector<StageUnit> units = stage_units(program);
  std::vector<std::size_t> ends(first_units);
  ends.push_back(units.size());
  if (ends.front() != 0 || !std::is_sorted(ends.begin(), ends.end(), std::less_equal<>())) {
    throw std::invalid_argument(
        "expected the first units of stages to ascend from 0 and to be below " +
        std::to_string(units.size()));
  }
  const Code& forward = program.codes[step.call.code];
  std::vector<StagePiece> pieces;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const StageUnit& first = units[ends[i]];
    pieces.push_back({first.begin, units[ends[i + 1] - 1].end, first.name,
                      forward.statements[first.begin].line});
  }
  check_cuts(program, step.call.code, pieces);
  StagedProgram staged = Cutter(program, step, pieces).make();
  std::vector<CodeId> codes;
  for (std::size_t i = 0; i < staged.stages.size(); ++i) {
    staged.stages[i].last_unit = units[ends[i + 1] - 1].name;
    codes.push_back(staged.stages[i].code);
  }
  Replicas replicas = replicate_globals(staged.program, codes);
  staged.stage_of_global = std::move(replicas.stage_of);
  staged.replica_of = std::move(replicas.replica_of);
  return staged;
}

}  // namespace ferry
