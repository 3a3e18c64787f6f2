// The text that a GPT learns: files of a folder, byte by byte.
//
// Every text file below the folder (sources, documents, settings: by the ending of its name), in
// the order of the paths, one after the other. Hidden entries, build folders (they have a
// CMakeCache.txt) and links are passed over. The vocabulary is the 256 bytes, so nothing is lost
// and no tokeniser is needed.
//
// Batches are windows at places drawn from (seed, step): equal on every machine, and a step's batch
// does not depend on the steps before it.
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

// The folder of the default text, a novel: ../share/ferry/text beside the running program, or
// real/train/text of the source tree. Empty if neither exists.
std::filesystem::path default_text_folder();

// Throws InputError if the folder does not exist, or has fewer than `min_bytes` bytes of text.
// Reads 64 MiB at most.
Text read_text(const std::filesystem::path& folder, std::int64_t min_bytes);

// `input` and `target` are int64 [batch, context]; the target is the input, one byte later.
Batch text_batch(const Text& text, std::int64_t batch, std::int64_t context, std::uint64_t seed,
                 std::int64_t step);

}  // namespace ferry::real::train
