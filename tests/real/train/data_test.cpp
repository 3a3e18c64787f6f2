// What a training reads: the same on every machine, and a step's batch from its number alone.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "formats/error.h"
#include "real/train/images.h"
#include "real/train/random.h"
#include "real/train/text.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

TEST(RandomTest, TheNumbersAreThese) {
  // Written down once: another compiler, or a change, must not move them.
  Random random(7, 3);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 6; ++i) numbers.push_back(random.below(1000));
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{513, 130, 485, 645, 880, 770}));
  EXPECT_NE(Random(7, 3).next(), Random(7, 4).next());
  EXPECT_NE(Random(7, 3).next(), Random(8, 3).next());
}

TEST(RandomTest, AllOfTheRangeComes) {
  Random random(1);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.between(-2, 3));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2, 3}));
}

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

TEST(TextTest, TheSourceTreeIsAText) { EXPECT_GT(read_text(default_text_folder(), 1).files, 50); }

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

TEST(ImagesTest, AsManyOfEachClass) {
  const Images images = draw_images(30, 1);
  EXPECT_EQ(images.pixels.sizes(), (std::vector<std::int64_t>{30, 3, 32, 32}));
  EXPECT_TRUE(torch::equal(torch::bincount(images.labels), torch::full({10}, 3, torch::kLong)));
}

TEST(ImagesTest, ThePicturesFollowTheSeed) {
  EXPECT_TRUE(torch::equal(draw_images(20, 1).pixels, draw_images(20, 1).pixels));
  EXPECT_FALSE(torch::equal(draw_images(20, 1).pixels, draw_images(20, 2).pixels));
  // Written down once: the same pictures on every machine.
  EXPECT_EQ(draw_images(20, 1).pixels.to(torch::kLong).sum().item<std::int64_t>(), 7255102);
}

TEST(ImagesTest, NoTwoClassesLookAlike) {
  // The means over many pictures differ, and one picture differs from another of its class.
  const Images images = draw_images(1000, 1);
  const torch::Tensor first = images.pixels.select(0, 0);
  EXPECT_FALSE(torch::equal(first, images.pixels.select(0, 1)));
  for (std::int64_t a = 0; a < kImageClasses; ++a) {
    const torch::Tensor of_a =
        (images.pixels.slice(0, 100 * a, 100 * a + 100).to(torch::kFloat) - 128).abs();
    EXPECT_GT(of_a.std().item<float>(), 10) << a;  // no flat pictures
  }
}

TEST(ImagesTest, BatchesFollowSeedAndStep) {
  const Images images = draw_images(50, 1);
  const Batch batch = image_batch(images, 8, 1, 3);
  EXPECT_EQ(batch.input.sizes(), (std::vector<std::int64_t>{8, 3, 32, 32}));
  EXPECT_EQ(batch.input.scalar_type(), torch::kFloat);
  EXPECT_GE(batch.input.min().item<float>(), -1);
  EXPECT_LT(batch.input.max().item<float>(), 1);
  EXPECT_TRUE(torch::equal(batch.input, image_batch(images, 8, 1, 3).input));
  EXPECT_FALSE(torch::equal(batch.input, image_batch(images, 8, 1, 4).input));
  EXPECT_FALSE(torch::equal(batch.input, image_batch(images, 8, 2, 3).input));
}

}  // namespace
}  // namespace ferry::real::train
