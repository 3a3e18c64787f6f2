// Implements stage_units of formats/stages.h: lists the units of a forward, which are the pieces
// between the places where it can be cut into stages.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

#include "formats/microbatches.h"
#include "formats/modules.h"
#include "formats/stages.h"

namespace ferry {
namespace {

class Units {
 public:
  explicit Units(const Program& program, CodeId forward)
      : program_(program), forward_(program.codes[forward]) {
    before_.push_back(0);
    for (const Statement& statement : forward_.statements) {
      before_.push_back(before_.back() + ops_of(statement));
    }
    runs_ = module_runs(forward_.statements);
    std::sort(runs_.begin(), runs_.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
    std::erase_if(runs_, [this](const ModuleRun& run) { return ops(run.begin, run.end) == 0; });
    // segment_modules looks at the first code with markers; an outlined forward may have no
    // markers.
    if (forward_code(program) == forward) {
      for (std::string& name : segment_modules(program)) repeated_.insert(std::move(name));
    }
  }

  std::vector<StageUnit> make() const;

 private:
  std::size_t ops(std::size_t begin, std::size_t end) const {
    return before_[end] - before_[begin];
  }
  std::size_t ops_of(const Statement& statement) const;
  std::vector<ModuleRun> segments() const;
  std::vector<ModuleRun> outermost() const;
  std::vector<ModuleRun> within(std::size_t begin, std::size_t end, bool repeated) const;
  std::vector<ModuleRun> pieces() const;

  const Program& program_;
  const Code& forward_;
  std::vector<std::size_t> before_;  // the number of ops before each statement
  std::vector<ModuleRun> runs_;      // runs with ops, outer before inner
  std::set<std::string> repeated_;
};

std::size_t Units::ops_of(const Statement& statement) const {
  if (std::holds_alternative<Op>(statement.action)) return 1;
  const auto* call = std::get_if<Call>(&statement.action);
  if (!call) return 0;
  std::size_t count = 0;
  for (const Statement& each : program_.codes[call->code].statements) count += ops_of(each);
  return count;
}

// Returns the calls with a recompute.
std::vector<ModuleRun> Units::segments() const {
  std::vector<ModuleRun> found;
  for (std::size_t i = 0; i < forward_.statements.size(); ++i) {
    const auto* call = std::get_if<Call>(&forward_.statements[i].action);
    if (!call || !is_segment(*call)) continue;
    found.push_back({program_.codes[call->code].name, i, i + 1});
  }
  return found;
}

// Returns the outermost modules in [begin, end): of those that repeat, or of all modules.
std::vector<ModuleRun> Units::within(std::size_t begin, std::size_t end, bool repeated) const {
  std::vector<ModuleRun> found;
  for (const ModuleRun& run : runs_) {
    if (run.begin < begin || run.end > end || (repeated && !repeated_.contains(run.module))) {
      continue;
    }
    found.push_back(run);
    begin = run.end;
  }
  return found;
}

std::vector<ModuleRun> Units::outermost() const {
  std::vector<ModuleRun> found = within(0, forward_.statements.size(), false);
  for (std::size_t i = 0; i < found.size();) {
    const std::vector<ModuleRun> inner = within(found[i].begin + 1, found[i].end - 1, false);
    if (inner.empty() || ops(found[i].begin, found[i].end) * 2 <= before_.back()) {
      ++i;
      continue;
    }
    const auto at = found.erase(found.begin() + static_cast<std::ptrdiff_t>(i));
    found.insert(at, inner.begin(), inner.end());
  }
  return found;
}

std::vector<ModuleRun> Units::pieces() const {
  std::vector<ModuleRun> found = segments();
  if (found.empty()) found = within(0, forward_.statements.size(), true);
  std::size_t covered = 0;
  for (const ModuleRun& run : found) covered += ops(run.begin, run.end);
  if (found.size() > 1 && covered * 3 >= before_.back() * 2) return found;
  std::vector<ModuleRun> modules = outermost();
  return modules.size() > 1 ? modules : found;
}

std::vector<StageUnit> Units::make() const {
  const std::vector<ModuleRun> pieces = this->pieces();
  if (pieces.size() < 2) {
    throw std::invalid_argument("cannot cut " + program_.name +
                                " into stages: its forward has no modules that repeat or follow "
                                "each other");
  }
  std::vector<StageUnit> units;
  if (ops(0, pieces.front().begin) > 0) units.push_back({"begin", 0, pieces.front().begin, {}, {}});
  for (const ModuleRun& piece : pieces) {
    if (!units.empty()) units.back().end = piece.begin;
    units.push_back({piece.module, units.empty() ? 0 : piece.begin, piece.end, {}, {}});
  }
  std::size_t& end = units.back().end;
  const std::size_t all = forward_.statements.size();
  while (end < all && std::holds_alternative<Free>(forward_.statements[end].action)) ++end;
  if (ops(end, all) > 0) {
    units.push_back({"end", end, all, {}, {}});
  } else {
    end = all;
  }
  return units;
}

// Lists the codes that statements run in forward, and in backward for their nodes.
class Runs {
 public:
  Runs(const Program& program, StageUnit& unit) : program_(program), unit_(unit) {}

  void take(const Code& code, std::size_t begin, std::size_t end, bool in_backward) {
    for (std::size_t i = begin; i < end; ++i) {
      const Action& action = code.statements[i].action;
      if (const auto* called = std::get_if<Call>(&action)) call(*called, in_backward);
      if (const auto* make = std::get_if<MakeNode>(&action)) body(make->body);
    }
  }

 private:
  void call(const Call& call, bool in_backward) {
    (in_backward ? unit_.backward : unit_.called).push_back(call.code);
    const Code& callee = program_.codes[call.code];
    take(callee, 0, callee.statements.size(), in_backward);
  }
  // The nodes that a body itself makes belong to a second derivative, so their bodies are not
  // listed. If it calls a code, the bodies of that code's nodes are: a backward in the body runs
  // them.
  void body(CodeId id) {
    unit_.backward.push_back(id);
    if (!open_.insert(id).second) return;  // it calls a code whose nodes have this same body
    for (const Statement& statement : program_.codes[id].statements) {
      if (const auto* called = std::get_if<Call>(&statement.action)) call(*called, true);
    }
    open_.erase(id);
  }

  const Program& program_;
  StageUnit& unit_;
  std::set<CodeId> open_;
};

}  // namespace

std::vector<StageUnit> stage_units(const Program& program) {
  const auto step = main_step(program);
  if (!step) {
    throw std::invalid_argument(
        "a pipeline needs a program whose main code is one call and one backward");
  }
  std::vector<StageUnit> units = Units(program, step->call.code).make();
  for (StageUnit& unit : units) {
    Runs(program, unit).take(program.codes[step->call.code], unit.begin, unit.end, false);
  }
  return units;
}

}  // namespace ferry
