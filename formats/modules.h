// Finds the modules of a captured forward by its markers, and those that can be segments. The
// outline of checkpoints (outline.h), the stages of a pipeline (stages.h) and spans (plan/) use it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Returns the segment that has module markers: the forward of a capture. Empty if no code has any.
std::optional<CodeId> forward_code(const Program& program);

const Module* module_marker(const Statement& statement);  // null if the statement is no marker

// Statements [begin, end) of one run of a module: its two markers and everything between them.
struct ModuleRun {
  std::string module;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Returns the runs sorted by their ends, so inner ones come before outer ones. Leaves out modules
// without a marker for their end.
std::vector<ModuleRun> module_runs(const std::vector<Statement>& statements);

// True if markers are calls of checkpoint.
bool marks_calls(const Program& program);
// True if none is, but markers say how the library would call modules by checkpoint.
bool marks_callable(const Program& program);

// Returns the modules that can be segments (formats/outline.h), in forward order. If markers are
// calls of checkpoint (Module::arguments), these are taken, or else those that the library would
// call so. Otherwise it takes modules that repeat, such as transformer or residual blocks. Modules
// repeat if their names differ only in numbers, like
// `layer1.0` and `layer4.1`; such modules are a family. Among the families that cover nearly the
// most ops, the one with the most members is taken: blocks rather than groups of blocks.
std::vector<std::string> segment_modules(const Program& program);

}  // namespace ferry
