// Smaller trials to try in a trial's stead, the boldest first, as RapidCheck's sequences: a layer
// fewer, a number nearer to the plainest.
#pragma once

#include <rapidcheck.h>

#include "sim/verify/programs/pipeline_net.h"
#include "sim/verify/programs/trial.h"

namespace ferry::verify {

rc::Seq<Recipe> shrinks(const Recipe& recipe);
rc::Seq<Trial> shrinks(const Trial& trial);
rc::Seq<PipelineTrial> shrinks(const PipelineTrial& trial);

// What is left when no smaller one fails. `start` fails.
template <class T, class Fails>
T shrunk(const T& start, Fails fails) {
  T best = start;
  rc::Seq<T> candidates = shrinks(best);
  while (const auto candidate = candidates.next()) {
    if (!fails(*candidate)) continue;
    best = *candidate;
    candidates = shrinks(best);
  }
  return best;
}

}  // namespace ferry::verify
