// Draws a hazard on one screen: which ops touched the bytes, on which streams, and the missing
// order.
//
//            stream 0             stream 1              host
//       #2   mm
//       #5                        A copy
//       #6                        ╎                     free
//       #8                        ╎                     alloc
//            ◀╌╌╌╌╌╌╌ no edge ╌╌╌╌╯
//       #9   B mm
//
// Each stream and host thread that takes part has a column, and each op a row, in issue order.
// Other ops are left out. Below are the schedule that shows the hazard, what goes wrong in it, and
// what would order the two accesses. At most 24 lines of 100 columns (in UTF-8 characters).
#pragma once

#include <string>

#include "sim/check/advice.h"
#include "sim/explore/explorer.h"

namespace ferry::explore {

// The hazard must be a race of the explorer's recording, and the witness must be of this hazard.
std::string diagram(const Explorer& explorer, const check::Hazard& hazard, const Witness& witness,
                    const check::AccessNames& names = check::AccessNames());

}  // namespace ferry::explore
