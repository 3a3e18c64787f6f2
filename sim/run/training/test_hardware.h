// A card for drawn programs and tests. Its figures are made up so that copies and kernels take
// comparable times: else timing could hide a fault. Its memory has no end.
#pragma once

#include "scenarios/hardware.h"

namespace ferry::sim {

Hardware test_hardware();

}  // namespace ferry::sim
