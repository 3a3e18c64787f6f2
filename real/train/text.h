// The text that a GPT or Llama learns: the files of a folder, byte by byte.
//
// It takes every text file below the folder (sources, documents, settings, by their extension), in
// the order of their paths. It skips hidden entries, build folders (which have a CMakeCache.txt)
// and links. The vocabulary is the 256 bytes, so nothing is lost and there is no tokenizer.
//
// A batch has windows at random positions for (seed, step). They are the same on every machine, and
// do not depend on earlier steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "real/train/batch.h"

namespace ferry::real::train {

struct Text {
  std::string bytes;
  std::int64_t files = 0;
};

// Returns the folder of the default text, a novel: ../share/ferry/text beside the running program,
// or real/train/text in the source tree. Empty if neither exists.
std::filesystem::path default_text_folder();

// Throws InputError if the folder does not exist, or has fewer than `min_bytes` bytes of text.
// Reads at most 64 MiB.
Text read_text(const std::filesystem::path& folder, std::int64_t min_bytes);

// `input` and `target` are int64 [batch, context]. The target is the input, one byte later.
Batch text_batch(const Text& text, std::int64_t batch, std::int64_t context, std::uint64_t seed,
                 std::int64_t step);

}  // namespace ferry::real::train
