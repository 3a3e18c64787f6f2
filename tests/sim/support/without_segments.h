// A program whose segments are plain calls: what checkpoints and spans must come to.
#pragma once

#include <variant>

#include "formats/program.h"

namespace ferry::test {

// Returns the same program with plain calls in place of its segments.
inline Program without_segments(Program program) {
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* call = std::get_if<Call>(&statement.action)) call->recompute = Recompute::kNone;
    }
  }
  return program;
}

}  // namespace ferry::test
