// What there is to decide in a program: the tensors that its first forward saves, and its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

struct PackedTensor {
  std::string node;
  Layout layout;
  std::uint64_t group = 0;         // storages, numbered in the order in which they are first packed
  std::int64_t storage_bytes = 0;  // of the whole storage
  bool global = false;             // a parameter's, a buffer's or an input's
  bool exempt = false;             // a parameter's or a buffer's: the offloader leaves it
};

// A call that may be a checkpoint. Those inside it are no segments of their own.
struct SurveyedSegment {
  std::vector<PackedTensor> inputs;  // which a checkpoint saves, and the hooks see
  bool whole = false;                // reentrant: all that it saves is recomputed, or nothing
  std::size_t first = 0;             // of its packs, in the survey
  std::size_t end = 0;
};

struct Survey {
  // What the hooks see where every segment just runs, in order.
  std::vector<PackedTensor> packs;
  std::vector<SurveyedSegment> segments;
};

Survey survey(const Program& program, const Hardware& hardware);

}  // namespace ferry::plan
