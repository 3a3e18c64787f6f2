// Features of random steps that a scheduler may not have been made for, each with the word that
// leaves it out (`--without`), and what replaces it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/verify/programs/recipe.h"

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
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::kReentrant) + 1;

struct FeatureInfo {
  std::string_view word;
  std::string_view what;
  void (*leave_out)(Recipe&);
};

const FeatureInfo& info(Feature feature);
std::array<Feature, kFeatures> all_features();
// Throws InputError, naming the option `--without`, where there is no such word.
Feature feature_of(std::string_view word);
// The features that the recipe has.
std::vector<Feature> features_of(const Recipe& recipe);

}  // namespace ferry::verify
