// Of rungs, those that need less memory at a time.
#include "plan/stairs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::plan {
namespace {

// Modules one after another, of which each saves 100 bytes.
Span span(const std::string& module, std::size_t at, std::size_t length, std::int64_t bytes,
          std::int64_t ns) {
  Span made;
  made.module = module;
  made.begin = at;
  made.end = at + length;
  made.bytes = bytes;
  made.ns = ns;
  made.before_bytes = static_cast<std::int64_t>(at) * 100;
  return made;
}

std::string text(const Stairs& stairs) {
  std::string all;
  for (std::size_t step = 0; step < stairs.steps(); ++step) {
    all += std::to_string(stairs.bytes(step)) + " for " + std::to_string(stairs.ns(step)) + ":";
    for (const Span& each : stairs.spans(step)) all += " " + each.module;
    all += "\n";
  }
  return all;
}

// Recomputed as a whole, all is made again at once: that frees nothing when it matters.
TEST(StairsTest, TheWholeIsNoStep) {
  const Stairs stairs({span("whole", 0, 4, 400, 1), span("a", 0, 1, 100, 10),
                       span("b", 1, 1, 100, 20), span("c", 2, 1, 100, 30)},
                      400);
  EXPECT_EQ(text(stairs),
            "400 for 0:\n"
            "300 for 10: a\n"
            "200 for 30: a b\n"
            "100 for 60: a b c\n");
}

// The last part is needed back first: what it makes again comes beside all that stays before it.
TEST(StairsTest, WhatIsMadeAgainComesBesideWhatStaysBeforeIt) {
  const Stairs last({span("d", 3, 1, 100, 10)}, 400);
  EXPECT_EQ(text(last), "400 for 0:\n");
  const Stairs first({span("a", 0, 1, 100, 10)}, 400);
  EXPECT_EQ(text(first), "400 for 0:\n300 for 10: a\n");
}

}  // namespace
}  // namespace ferry::plan
