#include "formats/modules.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

namespace ferry {
namespace {

// Returns the name with `#` instead of each number.
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c < '0' || c > '9') {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

struct Family {
  std::set<std::string> modules;
  std::size_t ops = 0;
};

// Returns the family with the most members among those that cover nearly the most ops.
std::set<std::string> largest_family(const std::vector<Statement>& statements,
                                     const std::vector<ModuleRun>& runs) {
  std::vector<std::size_t> ops(1, 0);  // number of ops before each statement
  for (const Statement& statement : statements) {
    ops.push_back(ops.back() + (std::holds_alternative<Op>(statement.action) ? 1 : 0));
  }
  std::map<std::string, Family> families;
  for (const ModuleRun& run : runs) {
    Family& family = families[without_numbers(run.module)];
    family.modules.insert(run.module);
    family.ops += ops[run.end] - ops[run.begin];
  }
  std::size_t most_ops = 0;
  for (const auto& [name, family] : families) {
    if (family.modules.size() > 1) most_ops = std::max(most_ops, family.ops);
  }
  // A family may cover up to a tenth fewer ops than the one that covers most.
  const Family* best = nullptr;
  for (const auto& [name, family] : families) {
    const std::size_t members = family.modules.size();
    if (members < 2 || family.ops == 0 || family.ops * 10 < most_ops * 9) continue;
    if (!best || members > best->modules.size()) best = &family;
  }
  return best ? best->modules : std::set<std::string>();
}

// True if `fits` is true for a marker that has arguments.
template <class Fits>
bool marks(const Program& program, Fits fits) {
  const std::optional<CodeId> forward = forward_code(program);
  if (!forward) return false;
  const std::vector<Statement>& statements = program.codes[*forward].statements;
  return std::any_of(statements.begin(), statements.end(), [&](const Statement& statement) {
    const Module* module = module_marker(statement);
    return module && module->arguments && fits(*module);
  });
}

}  // namespace

const Module* module_marker(const Statement& statement) {
  return std::get_if<Module>(&statement.action);
}

std::vector<ModuleRun> module_runs(const std::vector<Statement>& statements) {
  std::vector<ModuleRun> runs;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Module* module = module_marker(statements[i]);
    if (!module) continue;
    if (module->enter) {
      open.push_back(i);
    } else {
      // A Raise under a When leaves its modules open.
      while (module_marker(statements[open.back()])->name != module->name) open.pop_back();
      runs.push_back({module->name, open.back(), i + 1});
      open.pop_back();
    }
  }
  return runs;
}

std::optional<CodeId> forward_code(const Program& program) {
  for (CodeId id = 0; id < program.codes.size(); ++id) {
    const Code& code = program.codes[id];
    if (code.kind == CodeKind::kSegment &&
        std::any_of(code.statements.begin(), code.statements.end(), module_marker)) {
      return id;
    }
  }
  return std::nullopt;
}

bool marks_calls(const Program& program) {
  return marks(program, [](const Module& module) { return module.called; });
}

bool marks_callable(const Program& program) {
  return !marks_calls(program) && marks(program, [](const Module&) { return true; });
}

std::vector<std::string> segment_modules(const Program& program) {
  const std::optional<CodeId> forward = forward_code(program);
  if (!forward) return {};
  const std::vector<Statement>& statements = program.codes[*forward].statements;
  std::vector<ModuleRun> runs = module_runs(statements);
  std::sort(runs.begin(), runs.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::set<std::string> calls;
  std::set<std::string> callable;
  for (const ModuleRun& run : runs) {
    const Module& module = *module_marker(statements[run.begin]);
    if (module.arguments) (module.called ? calls : callable).insert(run.module);
  }
  std::set<std::string> chosen = calls.empty() ? callable : calls;
  if (chosen.empty()) chosen = largest_family(statements, runs);
  std::vector<std::string> found;
  for (const ModuleRun& run : runs) {
    if (chosen.erase(run.module) > 0) found.push_back(run.module);
  }
  return found;
}

}  // namespace ferry
