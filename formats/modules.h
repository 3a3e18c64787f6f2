// The modules of a captured forward, as its markers tell, and which of them may be segments.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

// The segment with the module markers, a capture's forward; none where there is none.
std::optional<CodeId> forward_code(const Program& program);

const Module* module_marker(const Statement& statement);  // null: it is none

// Statements [begin, end): a module's markers and what is between them.
struct ModuleRun {
  std::string module;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// In the order of their ends, the inner before the outer; those that are never left are left out.
std::vector<ModuleRun> module_runs(const std::vector<Statement>& statements);

// Whether markers are calls of checkpoint.
bool marks_calls(const Program& program);

// The forward's modules that may be segments (formats/outline.h), in forward order. Where markers
// are calls of checkpoint (Module::arguments), these; else the modules that repeat (transformer
// blocks, residual blocks). Modules repeat whose names are alike but for their numbers, as
// `layer1.0` and `layer4.1` are. Of the families that cover about as many ops as any, the one with
// most members is taken, so blocks rather than stages of blocks.
std::vector<std::string> segment_modules(const Program& program);

}  // namespace ferry
