// Draws a hazard on one screen: who touched what, on which stream, and the edge that is missing.
//
//            stream 0             stream 1              host
//       #2   mm
//       #5                        A copy
//       #6                        ╎                     free
//       #8                        ╎                     alloc
//            ◀╌╌╌╌╌╌╌ no edge ╌╌╌╌╯
//       #9   B mm
//
// Each stream and host thread that takes part has a column, each op a row, in issue order;
// ops that say nothing are left out. Below: the schedule that shows it, what is seen in it, and
// what would add the edge. At most 24 lines of 100 columns (as UTF-8 characters).
#pragma once

#include <string>

#include "sim/check/advice.h"
#include "sim/explore/explorer.h"

namespace ferry::explore {

// The hazard must be a race of the explorer's recording; the witness is of it.
std::string diagram(const Explorer& explorer, const check::Hazard& hazard, const Witness& witness,
                    const check::AccessNames& names = check::AccessNames());

}  // namespace ferry::explore
