// Generators for RapidCheck, for tests of a scheduler of your own (ferry/verify.h): random steps
// that it was made for, and what the oracles say of one.
//
//   rc::check("no oracle objects", [&] {
//     RC_ASSERT(!ferry::verify::judge(mine, *ferry::verify::gen::step(mine)));
//   });
//
// What is drawn depends on RapidCheck's seed alone, and not on its size: a tenth of the steps are
// large. A step shrinks by layers and numbers, and prints in words.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <utility>

#include "verify/hunted/hunted.h"
#include "verify/hunted/step.h"
#include "verify/programs/smaller_trials.h"

namespace ferry::verify {

// Is found by RapidCheck.
inline void showValue(const HuntedStep& step, std::ostream& out) { out << step; }

namespace gen {

// `scheduler` is copied; without one, steps of all features. Throws std::invalid_argument for one
// that has programs of its own.
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
