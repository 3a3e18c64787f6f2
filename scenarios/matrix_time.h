// How long a matrix product takes that computing bounds: tiles, in waves, over the multiprocessors.
//
// A kernel cuts the result into tiles and gives each to a multiprocessor. A tile at the edge costs
// what a whole one does, and so does a wave that does not fill the device (NVIDIA's "Matrix
// Multiplication Background User's Guide", whose eight tile sizes are taken). Where tiles are few,
// a product's terms are split among several, whose sums go through memory. The fastest way is
// taken, as cuBLAS's heuristics would.
//
// Assumed: that a multiprocessor has one tile at a time; how fast small tiles are beside large ones
// (they move more bytes for each FLOP, and the guide gives their order alone); and that rows that
// do not begin at multiples of 16 bytes take kernels of half the rate. Published of the last: 3.5
// times as long (H100, 588 against 592 columns, m87-labs/kestrel 143), and 30 % of GPT-2's speed in
// fp16 on an A100 (intel/torch-xpu-ops 1129).
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

__extension__ typedef __int128 WideNs;

// At the share of the peak that the hardware file states for products of whole waves. `dtype` is
// the one that is multiplied in. What is not a product, or a device whose multiprocessors are not
// known, gives 0.
WideNs product_ns(const MatrixProduct& product, DType dtype, const Hardware& hardware);

}  // namespace ferry
