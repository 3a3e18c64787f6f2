// Random steps for faults that the usual recipes (verify/programs/recipe.h) do not reach. The
// entries for verl use them (other_entries.cpp).
#pragma once

#include <cstdint>

#include "formats/program.h"

namespace ferry::verify::schedulers {

// Makes layers that save one activation with several layouts at the same address: as it is,
// transposed and flattened. For example, attention saves its output, and the projection after it
// saves the same bytes in another layout.
Program layouts_program(std::uint64_t number);

}  // namespace ferry::verify::schedulers
