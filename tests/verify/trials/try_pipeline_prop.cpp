// Random networks with skip tensors, in random stages, by every schedule and checkpoint mode: the
// gradients are those of one micro-batch after the other, nothing races, and nothing is left.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/verify/support/gen.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::test {
namespace {

RC_GTEST_PROP(PipelineProperty, NoOracleObjects, ()) {
  const PipelineTrial trial = *any_pipeline_trial();
  RC_CLASSIFY(trial.kind == PipelineKind::kAutograd, "autograd's");
  RC_CLASSIFY(trial.kind == PipelineKind::kInterleaved, "interleaved");
  RC_CLASSIFY(trial.mode != CheckpointMode::kNever, "checkpointed");
  RC_CLASSIFY(trial.nodes_before > 0, "workers whose nodes have higher numbers");
  RC_LOG() << trial << "\n";
  const auto verdict = try_pipeline(trial);
  if (verdict) RC_FAIL(to_string(*verdict));
}

}  // namespace
}  // namespace ferry::test
