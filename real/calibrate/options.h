// What was asked for: the command line of `ferry calibrate`, understood and checked.
//
// Its own options stand anywhere. What is left is a model and its options, as `ferry train` takes
// them (real/train/options.h); --device and --threads are one for both.
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
  std::filesystem::path output;   // the hardware file
  std::filesystem::path times;    // the table of kernel times
  std::filesystem::path kernels;  // what CUPTI times of a step
  std::string date;               // empty: today's
  bool json = false;
  std::optional<train::Options> model;  // whose step is timed
};

// None: help or the version was asked for, and printed. Throws CLI::ParseError for what is not
// understood and InputError for what makes no sense.
std::optional<Options> parse_options(int argc, const char* const* argv);

}  // namespace ferry::real::calibrate
