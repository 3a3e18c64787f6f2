// Makes a schedule that shows a wrong value smaller: fewer delays, then shorter ones.
//
// Delays are taken out by delta debugging (Zeller, Hildebrandt 2002: ddmin) until none can be
// spared. Then each one is shortened: as late an action as will do, waiting for as early a one. So
// what is left is as close to issue order as single changes get it. Every candidate is run.
#pragma once

#include <cstddef>

#include "sim/explore/explorer.h"

namespace ferry::explore {

struct Shrunk {
  Witness witness;
  std::size_t runs = 0;
};

// The evidence stays as strong as the witness's. Ends after so many runs, with what it has then.
Shrunk shrink_witness(const Explorer& explorer, const Witness& witness,
                      std::size_t runs_max = 2000);

}  // namespace ferry::explore
