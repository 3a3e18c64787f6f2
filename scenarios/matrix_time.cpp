#include "scenarios/matrix_time.h"

#include <algorithm>
#include <array>

namespace ferry {
namespace {

struct Tile {
  std::int64_t m;
  std::int64_t n;
  std::int64_t percent;  // assumed rate, relative to the largest tile
};

// Sorted from the most efficient to the least, as in the guide.
constexpr std::array<Tile, 8> kTiles = {{{256, 128, 100},
                                         {128, 256, 100},
                                         {128, 128, 95},
                                         {256, 64, 90},
                                         {64, 256, 90},
                                         {128, 64, 85},
                                         {64, 128, 85},
                                         {64, 64, 75}}};
constexpr std::int64_t kMostSplits = 32;
constexpr std::int64_t kLeastTerms = 256;  // a split with fewer does not fill a kernel's pipeline

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

WideNs ceil_of(WideNs a, WideNs b) { return (a + b - 1) / b; }

// The time of a product whose rows are not aligned to 16 bytes, in tenths of an aligned product's
// time. Such rows cannot be read as whole vectors, and Hopper uses the kernels of older cards for
// them. On an H100, the head of GPT-2 (bfloat16, 50,257 columns) took 4.2 to 6.8 times as long as
// at the card's share of the peak (measured). A product with rows aligned to 8 bytes took 3.5 times
// as long (docs/explanation/times.md); the same is assumed for 4 bytes. For other cards, twice as
// long is assumed.
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
