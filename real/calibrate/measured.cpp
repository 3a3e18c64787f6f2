#include "real/calibrate/measured.h"

#include <algorithm>

namespace ferry::real::calibrate {

Timing timing_of(std::vector<std::int64_t> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  return {.ns = samples_ns[samples_ns.size() / 2],
          .least_ns = samples_ns.front(),
          .rounds = static_cast<std::int64_t>(samples_ns.size())};
}

}  // namespace ferry::real::calibrate
