// The verifier's random trials for RapidCheck: it draws a seed, and shrinks what was made of it.
#pragma once

#include <rapidcheck.h>

#include "tests/sim/support/in_range.h"
#include "verify/programs/pipeline_trial.h"
#include "verify/programs/smaller_trials.h"
#include "verify/programs/trial.h"

namespace ferry::test {

using namespace verify;

// Generates what `draw` makes of some draws; `each_smaller` lists those to try in its stead.
template <class T>
rc::Gen<T> drawn(T (*draw)(Draws&), rc::Seq<T> (*each_smaller)(const T&)) {
  return [draw, each_smaller](const rc::Random& random, int) {
    rc::Random numbers = random;
    Draws draws(numbers.next());
    return rc::shrinkable::shrinkRecur(draw(draws), each_smaller);
  };
}
template <class T>
rc::Gen<T> drawn(T (*draw)(Draws&)) {
  return drawn<T>(draw, [](const T&) { return rc::Seq<T>(); });
}

inline rc::Gen<Recipe> any_recipe() {
  return drawn<Recipe>([](Draws& draws) { return draw_recipe(draws); }, each_smaller);
}
inline rc::Gen<Trial> any_trial() {
  return drawn<Trial>([](Draws& draws) { return draw_trial(draws); }, each_smaller);
}
inline rc::Gen<CoreOptions> any_options() { return drawn<CoreOptions>(draw_options); }
inline rc::Gen<PipelineTrial> any_pipeline_trial() {
  return drawn<PipelineTrial>(draw_pipeline_trial, each_smaller);
}

}  // namespace ferry::test
