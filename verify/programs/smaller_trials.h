// Lists the trials that are one step smaller than a trial, largest steps first: without some
// layers, or with one number closer to its smallest value. shrink_spec.h shrinks failing runs with
// these lists. They are RapidCheck sequences, so RapidCheck tests can shrink with them, too.
#pragma once

#include <rapidcheck.h>

#include "verify/programs/pipeline_trial.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

rc::Seq<Recipe> each_smaller(const Recipe& recipe);
rc::Seq<Trial> each_smaller(const Trial& trial);
rc::Seq<PipelineTrial> each_smaller(const PipelineTrial& trial);

// Returns a trial that fails, while no trial that is one step smaller fails. `start` must fail.
template <class T, class Fails>
T smallest_failing(const T& start, Fails fails) {
  T best = start;
  rc::Seq<T> candidates = each_smaller(best);
  while (const auto candidate = candidates.next()) {
    if (!fails(*candidate)) continue;
    best = *candidate;
    candidates = each_smaller(best);
  }
  return best;
}

}  // namespace ferry::verify
