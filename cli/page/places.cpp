#include "cli/page/places.h"

#include <variant>
#include <vector>

#include "formats/modules.h"

namespace ferry::cli {

Places::Places(const Program& program) {
  for (const Global& global : program.globals) {
    const std::size_t dot = global.name.rfind('.');
    std::string module = dot == std::string::npos ? global.name : global.name.substr(0, dot);
    if (global.kind == GlobalKind::kInput) module = "(inputs)";
    if (global.line != 0) modules_.emplace(global.line, std::move(module));
  }
  for (const Code& code : program.codes) {
    std::vector<const std::string*> inside;
    for (const Statement& statement : code.statements) {
      if (const Module* marker = module_marker(statement)) {
        if (marker->enter) {
          inside.push_back(&marker->name);
        } else if (!inside.empty()) {
          inside.pop_back();
        }
      }
      if (statement.line == 0 || inside.empty()) continue;
      modules_.emplace(statement.line, *inside.back());
    }
  }
}

const std::string& Places::module_of(std::uint32_t line) const {
  static const std::string kOptimizer = "(the optimizer's step)";
  static const std::string kOutside = "(outside all modules)";
  const auto found = modules_.find(line);
  if (found != modules_.end()) return found->second;
  return line == 0 ? kOptimizer : kOutside;
}

}  // namespace ferry::cli
