#include "vgpu/runtime/known_bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace ferry::vgpu {
namespace {

constexpr int kBytes = 40;

int below(int end) { return *rc::gen::resize(100, rc::gen::inRange(0, end)); }

// Against a flag for each byte.
RC_GTEST_PROP(KnownBytesProp, ARangeIsKnownWhereEachOfItsBytesIs, ()) {
  KnownBytes known;
  std::vector<bool> each(kBytes, false);
  for (int step = below(30); step >= 0; --step) {
    const int begin = below(kBytes);
    const int bytes = below(kBytes - begin + 1);
    const Range range{1000 + static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(bytes)};
    bool all = true;
    for (int i = begin; i < begin + bytes; ++i) all = all && each[static_cast<std::size_t>(i)];
    RC_ASSERT(known.contains(range) == all);
    const bool adds = below(2) == 0;
    adds ? known.add(range) : known.remove(range);
    for (int i = begin; i < begin + bytes; ++i) each[static_cast<std::size_t>(i)] = adds;
    RC_CLASSIFY(all && bytes > 0, "known");
  }
}

}  // namespace
}  // namespace ferry::vgpu
