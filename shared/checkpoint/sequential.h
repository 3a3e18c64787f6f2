// Cuts a chain of functions into segments, like torch.utils.checkpoint.checkpoint_sequential.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/checkpoint/checkpoint_rules.h"

namespace ferry {

// The functions [begin, end) of the chain.
struct SequentialSegment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool checkpoint = true;
  bool operator==(const SequentialSegment&) const = default;
};

// Returns segments of equal length; each is a checkpoint. The last one takes the remainder and has
// no checkpoint, because its backward comes next. Throws std::invalid_argument unless 1 <= segments
// <= length.
inline std::vector<SequentialSegment> sequential_segments(std::int64_t length,
                                                          std::int64_t segments,
                                                          const CheckpointRules& rules = Rules()) {
  if (segments < 1 || segments > length) {
    throw std::invalid_argument(
        "checkpoint_sequential: segments should be from 1 to the number of "
        "functions, " +
        std::to_string(length) + ", but is " + std::to_string(segments));
  }
  const std::int64_t each = length / segments;
  std::vector<SequentialSegment> cut;
  for (std::int64_t i = 0; i + 1 < segments; ++i) cut.push_back({i * each, (i + 1) * each, true});
  cut.push_back({(segments - 1) * each, length, !rules.leaves_last_plain()});
  return cut;
}

}  // namespace ferry
