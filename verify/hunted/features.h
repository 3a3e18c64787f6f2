// Features of random steps that a scheduler may not have been made for, each with the word that
// leaves it out (`--without`), and what replaces it.
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
// Throws InputError, naming the option `--without`, where there is no such word.
Feature feature_of(std::string_view word);
// The features that the trial has.
std::vector<Feature> features_of(const Trial& trial);

}  // namespace ferry::verify
