#include "plan/policies.h"

#include <array>
#include <cstddef>
#include <optional>

namespace ferry::plan {
namespace {

Candidate keep(const Survey& survey) { return {std::nullopt, keep_all(survey)}; }

template <Candidate (*way)(const Survey&)>
std::vector<Candidate> only(const Survey& survey) {
  return {way(survey)};
}

std::vector<Candidate> known_candidates(const Survey& survey) {
  if (!survey.segments.empty()) return mixed_candidates(survey);
  std::vector<Candidate> all = offload_candidates(survey);
  all.push_back(offload(survey));
  return all;
}

// In the order of the enumeration Policy.
constexpr std::array kSearches = {
    Search{Policy::kKeep, only<keep>},
    Search{Policy::kOffloadAll, only<offload_all>},
    Search{Policy::kOffload, only<offload>},
    Search{Policy::kPrefetch, offload_candidates, Choice::kFullSpeed},
    Search{Policy::kCheckpoint, only<recompute_all>},
    Search{Policy::kCheckpointNth, recompute_candidates, Choice::kFastest},
    Search{Policy::kCheckpointOffload, recompute_and_offload_candidates, Choice::kFullSpeed,
           recompute_all},
    Search{Policy::kCheckpointOffloadAll, only<recompute_and_offload_all>},
    Search{Policy::kSelective, nullptr, Choice::kSpans},
    Search{Policy::kKnapsack, nullptr, Choice::kSpans},
    Search{Policy::kOffloadSome, offload_candidates, Choice::kFastest},
    Search{Policy::kMixed, mixed_candidates, Choice::kFastest},
    Search{Policy::kBest, known_candidates, Choice::kBest},
};
static_assert([] {
  for (std::size_t i = 0; i < kSearches.size(); ++i) {
    if (kSearches[i].policy != static_cast<Policy>(i)) return false;
  }
  return kSearches.size() == kPolicies.size();
}());

}  // namespace

const Search& search_of(Policy policy) { return kSearches[static_cast<std::size_t>(policy)]; }

}  // namespace ferry::plan
