// How each policy runs the step: what it may choose from, and what it chooses. Names are in
// scenarios/policy.h.
//
//   keep         everything stays on the device
//   offload-all  everything moves, by TRL's scheduler in the core's place (sim/field/stash.h)
//   offload      everything moves, by the core with its defaults
//   prefetch     as much moves as comes back in time, all of it: the least memory that costs at
//                most 2 % over the longest of computing, copying out and copying back (picks.h)
//   best         the fastest that fits of mixed's (or budget's) candidates and of what a search
//                over the program's modules tries for this budget (best.h)
//   budget       the first saved storages move, as many as needed: they are needed back last, so
//                their copies have the most time
//   knapsack     what PyTorch's partitioner would keep, by its knapsack (field_spans.h)
//
// and where the program has segments (calls that are checkpoints, or modules that repeat):
//
//   checkpoint          every segment is recomputed
//   checkpoint-nth      as few of them as needed, evenly spread
//   checkpoint-offload  every segment is recomputed, and of their inputs the first ones move, as
//                       many as prefetch would
//   checkpoint-offload-all  every segment is recomputed, and all that is saved outside of them,
//                       with their inputs, moves by TRL's scheduler
//   selective           what torchtitan's selective checkpoints recompute (field_spans.h)
//   mixed               some segments are recomputed, wholly or up to some tensor; what they save
//                       beyond that, their inputs, and what the others save moves or stays
#pragma once

#include <cstdint>
#include <vector>

#include "plan/candidates.h"
#include "scenarios/policy.h"

namespace ferry::plan {

enum class Choice : std::uint8_t {
  kOnly,       // there is one candidate
  kFastest,    // of those that fit
  kSpans,      // of those that fit; spans, which the program's operators say
  kBest,       // of those that fit, and of what a search for the budget tries
  kFullSpeed,  // the least memory of those that take hardly longer than `baseline` computes
};

struct Search {
  Policy policy;
  std::vector<Candidate> (*candidates)(const Survey& survey);
  Choice choice = Choice::kOnly;
  Candidate (*baseline)(const Survey& survey) = nullptr;  // null: keep
};

const Search& search_of(Policy policy);

}  // namespace ferry::plan
