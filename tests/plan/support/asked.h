// How much a test of plans tries: a little, or what FERRY_PLANS in the environment says.
#pragma once

#include <cstdlib>

namespace ferry::test {

// FERRY_PLANS=1000 tries so many programs in place of a few. The campaign does (./dev campaign).
inline bool plans_are_asked() { return std::getenv("FERRY_PLANS") != nullptr; }

inline int asked_programs(int otherwise) {
  return plans_are_asked() ? std::atoi(std::getenv("FERRY_PLANS")) : otherwise;
}

}  // namespace ferry::test
