// The table of policies: which candidates each policy has, and how it chooses one of them. The
// names are in scenarios/policy.h; docs/reference/policies.md describes the policies for users.
//
//   keep         keeps everything on the device
//   offload-all  offloads everything with another library's scheduler instead of the core: by
//                default TRL's (--offload-all-as; sim/field/stash.h)
//   offload      offloads everything with the core and its default options
//   prefetch     the plan with the least memory that costs at most 2 % over the longest of
//                computing, copying out and copying back, and copies back all that it moves
//   best         the fastest plan that fits, of the candidates of mixed (or offload-some) and of
//                those that the search over spans finds for this budget (chooser.h)
//   offload-some offloads as many of the first saved storages as needed; backward needs them last,
//                so their copies have the most time
//   knapsack     recomputes what PyTorch's partitioner would recompute (field_spans.h)
//
// These policies need segments (calls of checkpoint, or modules that repeat):
//
//   checkpoint          recomputes every segment
//   checkpoint-nth      recomputes as few segments as needed, evenly spread
//   checkpoint-offload  recomputes every segment, and offloads the inputs of the first ones, as
//                       many as prefetch would
//   checkpoint-offload-all  recomputes every segment, and offloads the segments' inputs and all
//                       other saved tensors with the scheduler of offload-all
//   selective           recomputes what torchtitan's selective checkpoints do (field_spans.h)
//   mixed               recomputes some segments, wholly or up to one of their saved tensors, and
//                       keeps or offloads the other saved tensors and the segments' inputs
#pragma once

#include <cstdint>
#include <vector>

#include "plan/candidates.h"
#include "scenarios/policy.h"

namespace ferry::plan {

enum class Choice : std::uint8_t {
  kOnly,       // the only candidate
  kFastest,    // the fastest candidate that fits
  kSpans,      // the same, of sets of spans that are made from the program's operators
  kBest,       // the same, of the list and of what the search for this budget tries
  kFullSpeed,  // the least memory with about the time that `baseline` computes
};

struct Search {
  Policy policy;
  std::vector<Candidate> (*candidates)(const Survey& survey);
  Choice choice = Choice::kOnly;
  Candidate (*baseline)(const Survey& survey) = nullptr;  // for kFullSpeed; null: keep
};

const Search& search_of(Policy policy);

}  // namespace ferry::plan
