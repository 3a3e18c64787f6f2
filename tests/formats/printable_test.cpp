#include "formats/printable.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(PrintableTest, NothingReachesTheTerminalButText) {
  EXPECT_EQ(printable("mm at net.py:7"), "mm at net.py:7");
  EXPECT_EQ(printable("Größe µs 你"), "Größe µs 你");
  EXPECT_EQ(printable("\x1b[31m\n\x7f"), "\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // CSI in one character
}

}  // namespace
}  // namespace ferry
