#include "sim/verify/oracles/replays.h"

#include "sim/verify/oracles/model_run.h"

namespace ferry::verify {

ReplayCounts expected_replays(const Program& program, const std::vector<PlanSpan>& spans) {
  const ModelRun run(program, spans, nullptr);
  return {run.kernels(), run.again()};
}

}  // namespace ferry::verify
