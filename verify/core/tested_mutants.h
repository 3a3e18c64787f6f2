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
inline constexpr std::array<TestedMutant, 1> kTestedMutants = {
    {{"rule: skip dead", "FrameDrawn.EachRuleOfSavedTensorsShows"}}};

}  // namespace ferry::verify
