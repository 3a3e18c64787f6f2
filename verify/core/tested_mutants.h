// Mutants that drawn programs do not tell from the core, each with the unit test that does.
//
// A training step by itself never unpacks twice, outside of a backward or on another thread. The
// tests under tests/shared use the core by hand and do. tests/verify/core holds this table to
// what those tests show.
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
