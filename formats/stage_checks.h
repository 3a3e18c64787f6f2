// Checks that a forward can be cut where stages.h is asked to cut it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/program.h"
#include "formats/stages.h"

namespace ferry {

// Statements [begin, end) of the forward, and the unit that errors name.
struct StagePiece {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string unit;
  std::uint32_t line = 0;
};

[[noreturn]] void refuse_stage(const StagePiece& piece, const std::string& why);

// Check nodes, regions, streams and ambient state; then the uses of values that cross. Both throw
// as cut_into_stages does.
void check_cuts(const Program& program, CodeId forward, std::span<const StagePiece> pieces);
void check_routes(const StagedProgram& staged, std::span<const StagePiece> pieces);

}  // namespace ferry
