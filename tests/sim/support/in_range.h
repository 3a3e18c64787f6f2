// A range that RapidCheck does not make smaller.
#pragma once

#include <rapidcheck.h>

namespace ferry::test {

// gen::inRange shrinks its range with the size: a fixed size keeps it whole.
inline rc::Gen<int> in_range(int first, int end) {
  return rc::gen::resize(100, rc::gen::inRange(first, end));
}

}  // namespace ferry::test
