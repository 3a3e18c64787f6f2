// RapidCheck generators for tests of a scheduler of your own (ferry/verify.h). They make random
// steps that the scheduler supports; `judge` runs the scheduler on one.
//
//   rc::check("no oracle objects", [&] {
//     RC_ASSERT(!ferry::verify::judge(mine, *ferry::verify::gen::step(mine)));
//   });
//
// The steps depend on RapidCheck's seed, not on its size: some steps are always large. A step
// shrinks by layers and numbers, and prints in words.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <utility>

#include "verify/hunted/hunted.h"
#include "verify/hunted/step.h"
#include "verify/programs/smaller_trials.h"

namespace ferry::verify {

// RapidCheck finds this function by its name and prints steps with it.
inline void showValue(const HuntedStep& step, std::ostream& out) { out << step; }

namespace gen {

// Makes steps for a copy of `scheduler`; without one, steps with all features. Throws
// std::invalid_argument if the scheduler has its own programs.
inline rc::Gen<HuntedStep> step(HuntedScheduler scheduler = {}, Sizes sizes = Sizes::kMixed) {
  const auto draw = [sizes](const rc::Random& random, int) {
    rc::Random numbers = random;
    return rc::shrinkable::shrinkRecur(draw_step(numbers.next(), sizes),
                                       [](const Trial& trial) { return each_smaller(trial); });
  };
  return rc::gen::map(rc::Gen<Trial>(draw), [scheduler = std::move(scheduler)](Trial trial) {
    return step_of(scheduler, std::move(trial));
  });
}

}  // namespace gen
}  // namespace ferry::verify
