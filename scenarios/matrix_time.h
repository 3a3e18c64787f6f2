// The computing time of a matrix product, from tiles and waves over the multiprocessors.
//
// A kernel cuts the result into tiles and gives each tile to a multiprocessor. A tile at the edge
// costs as much as a full tile, and a wave that does not fill the device costs as much as a full
// wave (NVIDIA's "Matrix Multiplication Background User's Guide", which also has the eight tile
// sizes). If there are few tiles, the sums of a product are split among several tiles, and the
// partial sums go through memory. The model takes the fastest choice, as cuBLAS's heuristics would.
//
// Assumptions: a multiprocessor has one tile at a time; the rates of small tiles relative to large
// ones (they move more bytes for each FLOP; the guide gives only their order); and half the rate
// for rows that do not begin at multiples of 16 bytes. Published figures for the last: 3.5 times as
// long (H100, 588 against 592 columns, m87-labs/kestrel 143), and 30 % of GPT-2's speed in fp16 on
// an A100 (intel/torch-xpu-ops 1129).
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

__extension__ typedef __int128 WideNs;

// Returns the time at the share of the peak that the card's file states for products of full waves.
// `dtype` is the dtype of the multiplication. Returns 0 if there is no product, or if the number of
// multiprocessors is not known.
WideNs product_ns(const MatrixProduct& product, DType dtype, const Hardware& hardware);

}  // namespace ferry
