// Random steps for faults that recipes (verify/programs/recipe.h) do not reach.
#pragma once

#include <cstdint>

#include "formats/program.h"

namespace ferry::verify::schedulers {

// Layers that save one activation under several layouts which begin at one address: as it is,
// transposed, flattened. As an attention's output is saved by it and, in another
// order, by the projection behind it.
Program layouts_program(std::uint64_t number);

}  // namespace ferry::verify::schedulers
