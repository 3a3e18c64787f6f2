// What a trial of random rounds draws from its number: choices, options, the workers' pace.
#pragma once

#include <cstdint>
#include <memory>

#include "real/cpu/pace.h"
#include "shared/seam/options.h"
#include "tests/real/dice.h"

namespace ferry::real {

inline std::shared_ptr<Pace> drawn_pace(Dice& draw) {
  const auto seed = static_cast<std::uint64_t>(draw.below(std::int64_t{1} << 40));
  // The lanes and the streams that compute are bits 0, 1, 3 and 4.
  if (draw.one_in(3)) return std::make_shared<RandomPace>(seed);
  return std::make_shared<ChosenPace>(seed & 0b11011U);
}

inline CoreOptions drawn_options(Dice& draw) {
  CoreOptions options;
  options.copy_streams = draw.one_in(6)   ? CopyStreams::kNone
                         : draw.one_in(5) ? CopyStreams::kOne
                                          : CopyStreams::kTwo;
  options.reload_pool = draw.one_in(2) ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
  options.min_bytes = draw.of({0, 1024, 2048});
  options.window_tensors = draw.of({1, 2, 4, kUnlimited});
  options.window_bytes = draw.of({0, 4 << 10, kUnlimited});
  options.prefetch_bytes = draw.of({0, 4 << 10, 1 << 20});
  options.hold_bytes = draw.of({0, 4 << 10, kUnlimited});
  if (draw.one_in(5)) {
    for (int i = 0; i < 30; ++i) options.offload.push_back(!draw.one_in(3));
  }
  return options;
}

}  // namespace ferry::real
