// Lists the trials that are one step smaller than a trial, the boldest first: a layer fewer, or a
// number nearer to the plainest. The lists are RapidCheck's sequences, so its tests shrink as well.
#pragma once

#include <rapidcheck.h>

#include "verify/programs/pipeline_trial.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

rc::Seq<Recipe> each_smaller(const Recipe& recipe);
rc::Seq<Trial> each_smaller(const Trial& trial);
rc::Seq<PipelineTrial> each_smaller(const PipelineTrial& trial);

// `start` fails; none that is one step smaller than the result does.
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
