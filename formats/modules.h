// The modules of a captured forward, as its markers show, and those of them that may be segments.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

// The segment with the module markers, a capture's forward; none if no code has any.
std::optional<CodeId> forward_code(const Program& program);

const Module* module_marker(const Statement& statement);  // null: the statement is no marker

// Statements [begin, end): a module's two markers and everything between them.
struct ModuleRun {
  std::string module;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Sorted by their ends, inner before outer; modules that are never left are omitted.
std::vector<ModuleRun> module_runs(const std::vector<Statement>& statements);

// True if markers are calls of checkpoint.
bool marks_calls(const Program& program);

// The forward's modules that may be segments (formats/outline.h), in forward order. If markers are
// calls of checkpoint (Module::arguments), it takes these; else modules that repeat (transformer or
// residual blocks). Modules repeat if their names differ only in numbers, as `layer1.0` and
// `layer4.1` do. Of the families that cover about as many ops as any, the one with most members is
// taken, so blocks rather than stages of blocks.
std::vector<std::string> segment_modules(const Program& program);

}  // namespace ferry
