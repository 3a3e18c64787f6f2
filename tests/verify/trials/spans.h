// Programs with spans in place of checkpoints, and what running them shows.
#pragma once

#include <string>
#include <variant>

#include "formats/program.h"
#include "sim/run/simulation.h"
#include "verify/oracles/errors.h"

namespace ferry::test {

// The same program, of whose segments every `nth` is a checkpoint still, and the others are spans.
// 0: all are spans.
inline Program with_spans(Program program, int nth) {
  int number = 0;
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      auto* const call = std::get_if<Call>(&statement.action);
      if (!call || !is_segment(*call)) continue;
      if (nth > 0 && number++ % nth == 0) continue;
      *call = Call{.code = call->code, .in = call->in, .out = call->out};
      call->recompute = Recompute::kReplay;
    }
  }
  return program;
}

// What is wrong with `run`, against the same program with plain calls; empty: nothing.
inline std::string wrong_in(const sim::Simulation& run, const sim::Simulation& plain) {
  for (const check::Hazard& hazard : run.hazards) return to_string(hazard);
  const std::string error = verify::first_difference(sim::messages(plain), sim::messages(run));
  if (!error.empty()) return error;
  if (run.gradients != plain.gradients) return "a gradient differs";
  return run.leftovers.any() ? "something is left" : "";
}

}  // namespace ferry::test
