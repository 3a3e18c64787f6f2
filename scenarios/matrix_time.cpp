#include "scenarios/matrix_time.h"

#include <algorithm>
#include <array>

namespace ferry {
namespace {

struct Tile {
  std::int64_t m;
  std::int64_t n;
  std::int64_t percent;  // its rate beside the largest one's: assumed
};

// From the most efficient to the least, as the guide has them.
constexpr std::array<Tile, 8> kTiles = {{{256, 128, 100},
                                         {128, 256, 100},
                                         {128, 128, 95},
                                         {256, 64, 90},
                                         {64, 256, 90},
                                         {128, 64, 85},
                                         {64, 128, 85},
                                         {64, 64, 75}}};
constexpr std::int64_t kMostSplits = 32;
constexpr std::int64_t kLeastTerms = 256;  // of a split: fewer do not fill a kernel's pipeline

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

WideNs ceil_of(WideNs a, WideNs b) { return (a + b - 1) / b; }

// How many tenths of an aligned product's time one takes whose rows begin anywhere, so that whole
// vectors cannot be read. Hopper's own kernels want 16 bytes, and those of older cards run in their
// place: on an H100 the head of GPT-2, in bfloat16, of 50,257 columns, took 4.2 to 6.8 times as
// long as its products would at the card's share (measured), one of rows of 8 bytes 3.5 times
// (docs/times.md), for which 4 are taken too. Twice is assumed of others.
std::int64_t misaligned_tenths(std::int64_t aligned_bytes, std::int64_t compute_capability) {
  if (aligned_bytes >= 16) return 10;
  if (compute_capability != 90) return 20;
  return aligned_bytes < 4 ? 50 : 35;
}

}  // namespace

WideNs product_ns(const MatrixProduct& product, DType dtype, const Hardware& hardware) {
  if (product.batch == 0 || hardware.multiprocessors == 0) return 0;
  const std::int64_t tenths =
      compute_class(dtype) == ComputeClass::kFp64
          ? 10
          : misaligned_tenths(product.aligned_bytes, hardware.compute_capability);
  const WideNs rate = WideNs{hardware.flops_per_us_of(dtype)} * hardware.matmul_percent;
  const WideNs memory = WideNs{hardware.memory_bytes_per_us} * hardware.memory_percent;
  WideNs least = 0;
  for (const Tile& tile : kTiles) {
    const WideNs tiles =
        WideNs{product.batch} * ceil_of(product.m, tile.m) * ceil_of(product.n, tile.n);
    for (std::int64_t splits = 1; splits <= kMostSplits; splits *= 2) {
      const std::int64_t terms = ceil_of(product.k, splits);
      if (splits > 1 && terms < kLeastTerms) break;
      const WideNs waves = ceil_of(tiles * splits, WideNs{hardware.multiprocessors});
      const WideNs flops = waves * hardware.multiprocessors * 2 * tile.m * tile.n * terms;
      WideNs ns = ceil_of(flops * tenths * 100 * 100 * 100, rate * tile.percent);
      if (splits > 1) {  // sums in fp32, written and read
        const WideNs sums = WideNs{product.batch} * product.m * product.n * splits * 4 * 2;
        ns += ceil_of(sums * 1000 * 100, memory);
      }
      if (least == 0 || ns < least) least = ns;
    }
  }
  return least;
}

}  // namespace ferry
