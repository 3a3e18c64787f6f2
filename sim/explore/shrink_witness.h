// Makes a schedule that shows a wrong value smaller: fewer delays, then shorter ones.
//
// Delta debugging (Zeller, Hildebrandt 2002: ddmin) removes delays until all that are left are
// needed. Then each delay is shortened: the latest action that will do waits for the earliest one
// that will do. So the result is as close to issue order as single changes can get. Every candidate
// is run.
#pragma once

#include <cstddef>

#include "sim/explore/explorer.h"

namespace ferry::explore {

struct Shrunk {
  Witness witness;
  std::size_t runs = 0;
};

// The evidence stays at least as strong as the witness's. After `runs_max` runs, the best schedule
// so far is returned.
Shrunk shrink_witness(const Explorer& explorer, const Witness& witness,
                      std::size_t runs_max = 2000);

}  // namespace ferry::explore
