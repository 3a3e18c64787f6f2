// The number of programs that a test of plans tries: a few, or FERRY_PLANS of the environment.
#pragma once

#include <cstdlib>

namespace ferry::test {

// FERRY_PLANS=1000 tries 1,000 programs instead of a few. `./dev campaign` sets it.
inline bool plans_are_asked() { return std::getenv("FERRY_PLANS") != nullptr; }

inline int asked_programs(int otherwise) {
  return plans_are_asked() ? std::atoi(std::getenv("FERRY_PLANS")) : otherwise;
}

}  // namespace ferry::test
