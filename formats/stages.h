// A training step, cut at module boundaries into the stages of a pipeline.
//
// The program's main code must be one Call of a forward and one Backward, as in captures. Each
// stage becomes a segment of its own; the main code calls them in turn and hands values on, so the
// result is an ordinary program that computes what the original did. Whoever runs the stages on
// several devices takes the stages' codes and the routes between them, and leaves the main code
// aside.
//
//     forward        begin | h.0 | h.1 | end         units; `|`: where it may be cut
//     stages of 0,2  begin   h.0 | h.1   end         first units {0, 2}
//
//     f@0 () -> (x, s)    f@1 (x, s) -> (loss)       main:  call f@0 () -> (x, s)
//                                                           call f@1 (x, s) -> (loss)
//                                                           free x, s
//                                                           backward loss
//
// In captures a value's edge and its tensor are two slots. So a route says what it carries: a
// tensor goes forward, and along an edge a gradient comes back. What is used two stages later or
// more has a route of its own from where it was made: nothing is relayed.
//
// Lifetimes: a stage frees what it was handed where the forward did, and a value dies in the stage
// that made it at its end, if its free is in a later one. In the main code a value that is handed
// on lives until the last stage that reads it has ended, as an argument does.
//
// A global that several stages use, in their codes or in the bodies of their nodes, is there once
// in each of them (torchgpipe refuses such modules; Megatron-LM keeps tied embeddings this way, and
// sums their gradients, which is the runner's to do). Equal bodies stay one code where they name
// the same globals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/program.h"

namespace ferry {

// Statements [begin, end) of the forward's code.
struct StageUnit {
  std::string name;  // the module's name; "begin" and "end" are the rest
  std::size_t begin = 0;
  std::size_t end = 0;
  // The codes that the unit runs beside its own statements, through all calls, once for each time
  // that they run: in forward, and in backward for its nodes.
  std::vector<CodeId> called;
  std::vector<CodeId> backward;
};

// The finest pieces between which the forward may be cut, in order: they cover it. Its segments
// (calls of a recompute kind) are pieces or, where there is none, the modules that may be segments
// (formats/modules.h). Where these hold less than two thirds of the forward's ops, the outermost
// modules are taken, and of these each that holds more than half of the ops gives way to the
// modules in it. What is between two pieces belongs to the first of them; what is before the first
// one and after the last are pieces of their own, where they hold an op.
// Throws std::invalid_argument where the main code is not one Call and one Backward, and where
// there are not two pieces.
std::vector<StageUnit> stage_units(const Program& program);

// Result number `result` of stage `from` becomes argument number `argument` of stage `to`.
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
  std::vector<StageRoute> routes;  // sorted by `to` and its arguments: each argument has one
  // By global of `program`: the stage where it lives (0 if unused), and the global that it copies.
  // kNoSlot: it is no copy.
  std::vector<std::uint32_t> stage_of_global;
  std::vector<Slot> replica_of;
  std::uint32_t root = 0;  // the index of the backward's root among the last stage's results
};

// `program` passes the checker, and then the result does. `first_units`: of each stage, the number
// of its first unit; they ascend from 0.
// Throws std::invalid_argument, with the unit's name and the line where it begins, where a cut
// would part what belongs to one device: a node from its Save, a slot's edge from its tensor, a
// write in place from the tensor, a view from a part of its storage that no tensor carries over, a
// region (When, Exclude, a marked call), a stream's work from those who wait for it, ambient state
// from what it is for, or a backward within the forward from the nodes that it runs.
StagedProgram cut_into_stages(const Program& program, const std::vector<std::size_t>& first_units);

}  // namespace ferry
