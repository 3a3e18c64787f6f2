// A card for the random programs of ferry verify, and for tests. Its figures are made up, so that
// copies and kernels take comparable times: otherwise timing could hide a fault. Its memory is
// practically unlimited.
#pragma once

#include "scenarios/hardware.h"

namespace ferry::sim {

Hardware test_hardware();

}  // namespace ferry::sim
