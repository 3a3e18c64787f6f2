#include "verify/oracles/replays.h"

#include <utility>

#include "verify/oracles/model_run.h"

namespace ferry::verify {

ReplayCounts expected_replays(const Program& program, const std::vector<PlanSpan>& spans,
                              std::shared_ptr<const sim::Prepared> prepared) {
  const ModelRun run(program, spans, nullptr, std::move(prepared));
  return {run.kernels(), run.again(), run.spans()};
}

}  // namespace ferry::verify
