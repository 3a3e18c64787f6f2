// A forward as a row of operators, with what each costs to run again and what is in memory beside
// it: what spans of operators are chosen by (span_table.h). It is taken from the trace of a step
// that keeps everything.
//
// Memory in backward is told by the operator that made the last of what is saved and alive then:
// its *place*. Everything saved before it is there as well, as far as a plan keeps it. What else is
// there (parameters, gradients, workspace) is `beside` the place, at most.
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
  bool written = false;  // in place, by another: it is never made again
};

// An operator, or several that run again together (span_groups.h).
struct ModelOperator {
  sim::Time ns = 0;
  std::uint32_t count = 1;                // of operators
  std::int64_t beside = 0;                // bytes in its forward, or in a backward at its place
  std::int64_t carried = 0;               // of these, when backward comes to its place
  bool again = true;                      // it may run again
  bool joins_next = true;                 // a span may have it and the next one
  std::vector<std::uint32_t> makes = {};  // storages
  std::vector<std::uint32_t> reads = {};  // storages made before it
  std::vector<std::uint32_t> saves = {};  // storages that its node saves, of any maker
  std::int64_t saved_bytes = 0;           // of those that it makes and some node saves
};

struct SpanModel {
  std::vector<ModelOperator> operators;
  std::vector<ModelStorage> storages;
  std::int64_t peak_bytes = 0;   // of the step that keeps everything
  std::int64_t least_bytes = 0;  // beside any place, at least
};

// False if the program's forward may have no spans, if it calls other code, if its model calls
// checkpoint, or if it is not the first that the step runs.
bool has_operators(const Program& program);

// Without operators, if the program has none, or if its step fails.
SpanModel span_model(const Program& program, const KeepTrace& trace);

}  // namespace ferry::plan
