#include "real/train/images.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "real/train/random.h"

namespace ferry::real::train {

namespace {

// The position and size of a figure, in pixels.
struct Figure {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t size = 0;
};

// Returns the fraction of the foreground's colour in a pixel, in 1/256. `dx` and `dy` count from
// the centre of the figure.
using Shade = std::int64_t (*)(const Figure& at, std::int64_t dx, std::int64_t dy);

constexpr std::int64_t kFull = 256;

std::int64_t filled(bool inside) { return inside ? kFull : 0; }

std::int64_t disc(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return filled(dx * dx + dy * dy <= at.size * at.size);
}
std::int64_t square(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return filled(std::max(std::abs(dx), std::abs(dy)) <= at.size);
}
std::int64_t triangle(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return filled(std::abs(dy) <= at.size && 2 * std::abs(dx) <= dy + at.size);
}
std::int64_t cross(const Figure& at, std::int64_t dx, std::int64_t dy) {
  const bool reach = std::max(std::abs(dx), std::abs(dy)) <= at.size;
  return filled(reach && std::min(std::abs(dx), std::abs(dy)) <= at.size / 4);
}
std::int64_t ring(const Figure& at, std::int64_t dx, std::int64_t dy) {
  const std::int64_t square_of_distance = dx * dx + dy * dy;
  const std::int64_t inner = at.size - 2;
  return filled(square_of_distance <= at.size * at.size && square_of_distance >= inner * inner);
}
std::int64_t bars(const Figure& at, std::int64_t along) {
  return filled((along + 2 * kImageSide) / (at.size / 3 + 1) % 2 == 0);
}
std::int64_t rows(const Figure& at, std::int64_t, std::int64_t dy) { return bars(at, dy); }
std::int64_t columns(const Figure& at, std::int64_t dx, std::int64_t) { return bars(at, dx); }
std::int64_t chessboard(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return filled(bars(at, dx) == bars(at, dy));
}
std::int64_t slope(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return std::clamp<std::int64_t>(kFull / 2 + (dx + dy) * kFull / (4 * at.size), 0, kFull);
}
std::int64_t glow(const Figure& at, std::int64_t dx, std::int64_t dy) {
  return std::max<std::int64_t>(0, kFull - (dx * dx + dy * dy) * kFull / (2 * at.size * at.size));
}

constexpr std::array<Shade, kImageClasses> kShades = {disc, square,  triangle,   cross, ring,
                                                      rows, columns, chessboard, slope, glow};

void draw(Random& random, Shade shade, std::uint8_t* pixels) {
  constexpr std::int64_t kNoise = 48;
  const Figure at{
      .x = random.between(12, 19), .y = random.between(12, 19), .size = random.between(6, 11)};
  std::array<std::int64_t, 3> back{};
  std::array<std::int64_t, 3> front{};
  for (std::size_t colour = 0; colour < 3; ++colour) {
    back[colour] = random.between(20, 110);
    front[colour] = random.between(130, 235);
  }
  // Half of the pictures are dark on light.
  if (random.below(2) == 0) std::swap(back, front);
  for (std::size_t colour = 0; colour < 3; ++colour) {
    for (std::int64_t y = 0; y < kImageSide; ++y) {
      for (std::int64_t x = 0; x < kImageSide; ++x) {
        const std::int64_t part = shade(at, x - at.x, y - at.y);
        const std::int64_t clean = (back[colour] * (kFull - part) + front[colour] * part) / kFull;
        const std::int64_t noisy = clean + random.between(-kNoise, kNoise);
        *pixels++ = static_cast<std::uint8_t>(std::clamp<std::int64_t>(noisy, 0, 255));
      }
    }
  }
}

}  // namespace

Images draw_images(std::int64_t count, std::uint64_t seed) {
  Images images{torch::empty({count, 3, kImageSide, kImageSide}, torch::kByte),
                torch::empty({count}, torch::kLong)};
  auto* pixels = images.pixels.mutable_data_ptr<std::uint8_t>();
  auto* labels = images.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(seed, static_cast<std::uint64_t>(i));
    labels[i] = i * kImageClasses / count;
    draw(random, kShades[static_cast<std::size_t>(labels[i])],
         pixels + i * 3 * kImageSide * kImageSide);
  }
  return images;
}

Batch image_batch(const Images& images, std::int64_t batch, std::uint64_t seed, std::int64_t step) {
  Random random(seed, static_cast<std::uint64_t>(step));
  torch::Tensor chosen = torch::empty({batch}, torch::kLong);
  auto* index = chosen.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < batch; ++i) index[i] = random.below(images.labels.size(0));
  // Both divisions are by powers of two, so they are exact.
  return {images.pixels.index_select(0, chosen).to(torch::kFloat).div_(128).sub_(1),
          images.labels.index_select(0, chosen)};
}

}  // namespace ferry::real::train
