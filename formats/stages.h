// Cuts a training step at module boundaries into the stages of a pipeline.
//
// The program's main code must be one Call of a forward and one Backward, as in captures. Each
// stage becomes a segment. The main code calls the segments one after another and passes values on,
// so the result is an ordinary program that computes the same as the original. A runner that puts
// stages on several devices uses the codes of the stages and the routes between them, and not the
// main code.
//
//     forward        begin | h.0 | h.1 | end         units; `|`: a possible cut
//     stages of 0,2  begin   h.0 | h.1   end         first units {0, 2}
//
//     f@0 () -> (x, s)    f@1 (x, s) -> (loss)       main:  call f@0 () -> (x, s)
//                                                           call f@1 (x, s) -> (loss)
//                                                           free x, s
//                                                           backward loss
//
// In captures a value's edge and its tensor are two slots. So a route says what it carries: a
// tensor goes forward, and a gradient comes back along an edge. A value that is used two or more
// stages later has its own route from the stage that made it. Stages in between do not pass it on.
//
// Lifetimes: a stage frees its arguments where the forward did. If the free of a value is in a
// later stage, the value dies at the end of the stage that made it. In the main code, a value that
// is passed on lives until the end of the last stage that reads it, like an argument.
//
// Each stage has its own copy of a global that several stages use, in their codes or in the bodies
// of their nodes. (torchgpipe rejects such modules. Megatron-LM keeps tied embeddings in this way
// and adds up their gradients; here the runner has to do that.) Equal bodies that name the same
// globals stay one code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Statements [begin, end) of the forward's code.
struct StageUnit {
  std::string name;  // the module's name, or "begin" or "end" for the rest
  std::size_t begin = 0;
  std::size_t end = 0;
  // The codes that the unit's statements run, directly or through calls, listed once for each run:
  // in forward, and in backward for its nodes.
  std::vector<CodeId> called;
  std::vector<CodeId> backward;
};

// Returns the smallest pieces between which the forward can be cut, in order. Together they cover
// the forward. The pieces are its segments (calls of a recompute kind) or, if there are none, the
// modules that can be segments (formats/modules.h). If these have less than two thirds of the
// forward's ops, the pieces are the outermost modules; a module with more than half of the ops is
// replaced by the modules in it. Statements between two pieces belong to the first of them.
// Statements before the first piece and after the last one are pieces too if they have an op.
// Throws std::invalid_argument if the main code is not one Call and one Backward, or if there are
// fewer than two pieces.
std::vector<StageUnit> stage_units(const Program& program);

// The result with index `result` of stage `from` is the argument with index `argument` of stage
// `to`.
struct StageRoute {
  std::uint32_t from = 0;
  std::uint32_t result = 0;
  std::uint32_t to = 0;
  std::uint32_t argument = 0;
  bool tensor = false;
  bool edge = false;
  bool operator==(const StageRoute&) const = default;
};

struct Stage {
  CodeId code = 0;
  std::string first_unit;  // names of units; equal if there is only one
  std::string last_unit;
};

struct StagedProgram {
  Program program;
  std::vector<Stage> stages;
  std::vector<StageRoute> routes;  // one for each argument, sorted by stage and argument
  // For each global of `program`: the stage where it lives (0 if it is not used), and the global of
  // which it is a copy (kNoSlot if it is no copy).
  std::vector<std::uint32_t> stage_of_global;
  std::vector<Slot> replica_of;
  std::uint32_t root = 0;  // the index of the backward's root among the last stage's results
};

// `program` must pass the checker; then the result does too. `first_units` has the index of the
// first unit of each stage, ascending from 0. Throws std::invalid_argument, with the unit's name
// and the line where it begins, if a cut would separate what must be on one device: a node and its
// Save, a slot's edge and its tensor, a write in place and its tensor, a view and bytes of its
// storage that no tensor takes to its stage, the two ends of a region (When, Exclude, a marked
// call), work on a stream and the wait for it, ambient state and the ops that depend on it, or a
// backward inside the forward and the nodes that it runs.
StagedProgram cut_into_stages(const Program& program, const std::vector<std::size_t>& first_units);

}  // namespace ferry
