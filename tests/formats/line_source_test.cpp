#include "formats/line_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <istream>
#include <sstream>
#include <streambuf>
#include <string>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry {
namespace {

TEST(LineSourceTest, GivesLinesWithTheirNumbers) {
  std::istringstream in("a\n\nbc");
  LineSource lines(in, "f");
  std::string_view line;
  for (const std::string expected : {"a", "", "bc"}) {
    ASSERT_TRUE(lines.next(line));
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(lines.next(line));
  EXPECT_EQ(lines.number(), 3u);
}

// A pipe whose writer writes a few bytes at a time.
class Pipe final : public std::streambuf {
 public:
  explicit Pipe(std::string text) : text_(std::move(text)) {}

 private:
  std::streamsize xsgetn(char* into, std::streamsize most) override {
    const std::size_t count =
        text_.copy(into, static_cast<std::size_t>(std::min<std::streamsize>(most, 3)), at_);
    at_ += count;
    return static_cast<std::streamsize>(count);
  }

  std::string text_;
  std::size_t at_ = 0;
};

TEST(LineSourceTest, AShortReadIsNotTheEnd) {
  Pipe pipe("one\ntwo and three\nfour");
  std::istream in(&pipe);
  LineSource lines(in, "f");
  std::string_view line;
  for (const std::string expected : {"one", "two and three", "four"}) {
    ASSERT_TRUE(lines.next(line));
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(lines.next(line));
}

// As /dev/zero: a line without end took all memory.
class Endless final : public std::streambuf {
  int_type underflow() override {
    setg(&byte_, &byte_, &byte_ + 1);
    return byte_;
  }
  char byte_ = 'x';
};

TEST(LineSourceTest, ALineWithoutEndIsRefused) {
  Endless endless;
  std::istream in(&endless);
  LineSource lines(in, "f");
  std::string_view line;
  try {
    lines.next(line);
    FAIL() << "it ended";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "f:1: expected lines of at most 67108864 bytes");
  }
}

}  // namespace
}  // namespace ferry
