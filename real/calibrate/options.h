// The command line of `ferry calibrate`, parsed and checked.
//
// Its own options may be anywhere. The rest is a model with its options, as for `ferry train`
// (real/train/options.h). --device and --threads apply to both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "real/train/options.h"

namespace ferry::real::calibrate {

struct Options {
  bool cuda = false;
  std::filesystem::path disk;
  std::int64_t threads = 0;  // 0: LibTorch's choice
  std::int64_t rounds = 5;
  bool small = false;
  std::filesystem::path output;   // the hardware file to write
  std::filesystem::path times;    // the kernel-time table to write
  std::filesystem::path kernels;  // the file for CUPTI's kernel times
  std::string date;               // empty: today
  bool json = false;
  std::optional<train::Options> model;  // the model whose step is timed
};

// Returns none if --help or --version was given, and printed. Throws CLI::ParseError for unknown
// arguments, InputError for invalid ones.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace ferry::real::calibrate
