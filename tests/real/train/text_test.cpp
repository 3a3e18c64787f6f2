// A training reads the same text on every machine, and a step's batch follows from its number.
#include "real/train/text.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "formats/error.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

TEST(TextTest, FilesComeInTheOrderOfTheirPaths) {
  const test::Folder folder;
  folder.write("t/b.md", "second ");
  folder.write("t/a/z.cpp", "first ");
  folder.write("t/c.txt", "third");
  folder.write("t/picture.png", "passed over");
  folder.write("t/.hidden.txt", "passed over");
  folder.write("t/.git/words.txt", "passed over");
  folder.write("t/build/dev/CMakeCache.txt", "passed over");
  folder.write("t/build/dev/deep/words.txt", "passed over");
  const Text text = read_text(folder.path("t"), 1);
  EXPECT_EQ(text.bytes, "first second third");
  EXPECT_EQ(text.files, 3);
}

TEST(TextTest, TooLittleIsAnErrorThatSaysHowMuch) {
  const test::Folder folder;
  folder.write("t/a.txt", "abc");
  try {
    read_text(folder.path("t"), 4);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(
        std::string(error.what()).find("expected at least 4 bytes of text, found 3 in 1 files"),
        std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(read_text(folder.path("t"), 3));
  EXPECT_THROW(read_text(folder.path("nowhere"), 1), InputError);
}

// It was the source tree: whoever edited a comment had other losses.
TEST(TextTest, WhereNoneIsNamedItIsANovelAndNothingElse) {
  const Text text = read_text(default_text_folder(), 1);
  EXPECT_EQ(text.files, 1);
  EXPECT_EQ(text.bytes.size(), 266587u);
  EXPECT_TRUE(text.bytes.starts_with("NORTHANGER ABBEY\n"));
}

TEST(TextTest, TheTargetIsTheInputOneByteLater) {
  const Text text{.bytes = "abcdefghijklmnopqrstuvwxyz", .files = 1};
  const Batch batch = text_batch(text, 5, 8, 1, 0);
  EXPECT_EQ(batch.input.sizes(), (std::vector<std::int64_t>{5, 8}));
  EXPECT_TRUE(torch::equal(batch.target, batch.input + 1));  // in this alphabet
}

TEST(TextTest, EveryWindowOfTheTextCanCome) {
  const Text text{.bytes = "abcd", .files = 1};
  std::set<std::int64_t> first;
  for (std::int64_t step = 0; step < 50; ++step) {
    first.insert(text_batch(text, 1, 2, 1, step).input[0][0].item<std::int64_t>());
  }
  EXPECT_EQ(first, (std::set<std::int64_t>{'a', 'b'}));  // 'c' has no target two on
}

TEST(TextTest, BatchesFollowSeedAndStep) {
  const test::Folder folder;
  const Text text = read_text(folder.text(), 1);
  const auto input = [&](std::uint64_t seed, std::int64_t step) {
    return text_batch(text, 4, 16, seed, step).input;
  };
  EXPECT_TRUE(torch::equal(input(1, 5), input(1, 5)));
  EXPECT_FALSE(torch::equal(input(1, 5), input(1, 6)));
  EXPECT_FALSE(torch::equal(input(1, 5), input(2, 5)));
}

TEST(TextTest, BytesAboveAsciiAreTokensToo) {
  const Text text{.bytes = "\xc3\xa9\xc3\xa9", .files = 1};
  const Batch batch = text_batch(text, 4, 2, 1, 0);
  EXPECT_EQ(batch.input.max().item<std::int64_t>(), 0xc3);
  EXPECT_EQ(batch.input.min().item<std::int64_t>(), 0xa9);
}

}  // namespace
}  // namespace ferry::real::train
