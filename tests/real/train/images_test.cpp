// The pictures are the same on every machine, and a step's batch follows from its number.
#include "real/train/images.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace ferry::real::train {
namespace {

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
