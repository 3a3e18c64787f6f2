// A model of the forward as a sequence of operators: the time of each, the storages that it makes,
// reads and saves, and the other memory in use at each point. The dynamic programs over spans
// (span_table.h, nest_table.h) work on this model. It is made from the trace of a step that keeps
// everything.
//
// A point of backward is named by an operator of the forward: the one that made the last saved
// storage that is still alive at this point. Storages saved before it are alive too, as far as a
// plan keeps them. All other memory (parameters, gradients, workspaces) is at most `beside`.
//
// The model ignores fragments, and takes the most other memory of each point.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/program.h"
#include "plan/keep_trace.h"

namespace ferry::plan {

// A storage that an operator of the forward made.
struct ModelStorage {
  std::int64_t bytes = 0;
  std::uint32_t maker = 0;
  std::uint32_t last = 0;  // the last operator of the forward that reads it or whose node saves it
  bool saved = false;
  bool written = false;  // another group's operator writes to it in place: it is never recomputed
};

// An operator, or several that are always recomputed together (span_groups.h).
struct ModelOperator {
  sim::Time ns = 0;
  std::uint32_t count = 1;                // number of operators of the program
  std::int64_t beside = 0;                // other bytes, at most, in its forward or its backward
  std::int64_t carried = 0;               // the part of `beside` when backward arrives at it
  bool again = true;                      // it may be recomputed
  bool joins_next = true;                 // one span may contain it and the next operator
  std::vector<std::uint32_t> makes = {};  // storages
  std::vector<std::uint32_t> reads = {};  // storages made by earlier operators
  std::vector<std::uint32_t> saves = {};  // storages that its node saves, whoever made them
  std::int64_t saved_bytes = 0;           // bytes that it makes and any node saves
};

struct SpanModel {
  std::vector<ModelOperator> operators;
  std::vector<ModelStorage> storages;
  std::int64_t peak_bytes = 0;   // the peak of the step that keeps everything
  std::int64_t least_bytes = 0;  // other memory at every point: at least this
};

// True if spans of the forward's operators can be chosen. False if the forward may have no spans or
// calls other code, if the model calls checkpoint, or if the step runs operators before the
// forward.
bool has_operators(const Program& program);

// Makes the model. It has no operators if has_operators is false, or if the traced step fails.
SpanModel span_model(const Program& program, const KeepTrace& trace);

}  // namespace ferry::plan
