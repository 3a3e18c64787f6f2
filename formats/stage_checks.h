// Checks that a forward can be cut into the given stages: a part of cut_into_stages (stages.h). An
// error names the unit at which the stage begins, and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/program.h"
#include "formats/stages.h"

namespace ferry {

// Statements [begin, end) of the forward that make a stage, and its first unit, which errors name.
struct StagePiece {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string unit;
  std::uint32_t line = 0;
};

[[noreturn]] void refuse_stage(const StagePiece& piece, const std::string& why);

// check_cuts checks nodes, regions, streams and ambient state; check_routes checks the uses of
// values that go from one stage to another. Both throw like cut_into_stages.
void check_cuts(const Program& program, CodeId forward, std::span<const StagePiece> pieces);
void check_routes(const StagedProgram& staged, std::span<const StagePiece> pieces);

}  // namespace ferry
