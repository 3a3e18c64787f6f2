// Features of random steps that a scheduler may not support. HuntedScheduler::without and the
// option `--without` of a hunt name them, and reports list those that a failure needs.
//
// Each has a word and a function that replaces the feature in a trial. A scheduler's own programs
// are not changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verify/programs/trial.h"

namespace ferry::verify {

enum class Feature : std::uint8_t {
  kLateWrites,
  kRaises,
  kSideStreams,
  kForwardsAhead,
  kRetainGraph,
  kHigherDerivatives,
  kNestedBackward,
  kUnusedSaves,
  kEscapes,
  kViews,
  kInPlace,
  kNoHooks,
  kMovedParameters,
  kCheckpoints,
  kReentrant,
  kPlans,
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::kPlans) + 1;

struct FeatureInfo {
  std::string_view word;
  std::string_view what;
  void (*leave_out)(Trial&);
};

const FeatureInfo& info(Feature feature);
std::array<Feature, kFeatures> all_features();
// Throws InputError, which names the option `--without`, if no feature has this word.
Feature feature_of(std::string_view word);
// Returns the features that the trial has: those whose removal changes its program or plan.
std::vector<Feature> features_of(const Trial& trial);

}  // namespace ferry::verify
