// The pictures that a ResNet learns: drawn by the program, 32 x 32 in three colours, ten classes.
//
// Each picture is one figure (a disc, a square, a triangle, a cross, a ring, stripes in two
// directions, a chessboard, a slope, a glow) of drawn size, place and colours, under noise:
// learnable in a few dozen steps, and not by its colour or by any one pixel. Everything is drawn by
// integers (random.h), so a seed names the same pictures on every machine.
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

// Draws equally many of each class, one class after the other.
Images draw_images(std::int64_t count, std::uint64_t seed);

// `input` is float32 [batch, 3, 32, 32] in [-1, 1), `target` int64 [batch]; drawn from
// (seed, step).
Batch image_batch(const Images& images, std::int64_t batch, std::uint64_t seed, std::int64_t step);

}  // namespace ferry::real::train
