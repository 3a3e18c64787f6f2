// Mutants that random programs cannot show, each with the unit test that kills it.
//
// A training step never unpacks a tensor twice, outside of a backward, or on another thread. Tests
// in tests/shared use the core by hand and do so. tests/verify/core checks that this table agrees
// with those tests.
#pragma once

#include <array>
#include <string_view>

namespace ferry::verify {

struct TestedMutant {
  std::string_view mutant;
  std::string_view test;
};
inline constexpr std::array<TestedMutant, 8> kTestedMutants = {{
    {"rule: thread key", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: fresh outside", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: group key", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: free unpacked", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: free unneeded", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: refuse twice", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: skip dead", "FrameDrawn.EachRuleOfSavedTensorsShows"},
    {"rule: refuse reentrant", "ReentrantDrawn.EachRuleOfItsBackwardShows"},
}};

}  // namespace ferry::verify
