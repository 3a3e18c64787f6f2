// The pictures for a ResNet. The program draws them: 32 x 32 pixels in three colours, ten classes.
//
// Each picture has one figure (a disc, a square, a triangle, a cross, a ring, stripes in two
// directions, a chessboard, a slope, a glow) with random size, position and colours, and noise. A
// model can learn them in a few dozen steps, but not from the colour or from a single pixel. Only
// integers are used (random.h), so a seed gives the same pictures on every machine.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "real/train/batch.h"

namespace ferry::real::train {

inline constexpr std::int64_t kImageClasses = 10;
inline constexpr std::int64_t kImageSide = 32;

struct Images {
  torch::Tensor pixels;  // uint8 [count, 3, 32, 32]
  torch::Tensor labels;  // int64 [count]
};

// Draws equally many pictures of each class, one class after the other.
Images draw_images(std::int64_t count, std::uint64_t seed);

// Returns a random batch for (seed, step). `input` is float32 [batch, 3, 32, 32] in [-1, 1),
// `target` is int64 [batch].
Batch image_batch(const Images& images, std::int64_t batch, std::uint64_t seed, std::int64_t step);

}  // namespace ferry::real::train
