// A call of the device fails somewhere in a pipeline's step: the cause reaches the caller, nothing
// races, nothing is left, and the next step does what it should.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shared/adaptors/observed.h"
#include "tests/verify/support/gen.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::test {
namespace {

RC_GTEST_PROP(PipelineFaults, TheNextStepWorks, ()) {
  PipelineTrial trial = *any_pipeline_trial();
  trial.steps = 1;
  trial.grad = true;
  trial.stray = Stray::kNothing;
  trial.drop_refused();
  const auto step =
      static_cast<Step>(*in_range(static_cast<int>(kCheckpointSteps), static_cast<int>(kSteps)));
  const auto fault = std::make_shared<FaultPoint>(step, *in_range(0, 12));
  RC_LOG() << trial << " fails at " << name(step) << "\n";
  NetRun run(trial, true);
  std::vector<Faulty<sim::SimDevice>> devices;
  for (std::uint32_t d = 0; d < run.devices(); ++d) {
    devices.emplace_back(sim::SimDevice(run.machine(), d), fault);
  }
  const NetResult failed = run.result([&] { run.pipelined(devices, {}); });
  RC_CLASSIFY(fault->fired(), "failed");
  RC_ASSERT(failed.hazards.empty());
  RC_ASSERT(failed.left == 0);
  RC_ASSERT(failed.error.empty() != fault->fired());
  if (!fault->fired()) return;
  RC_ASSERT(failed.error.find("injected fault") != std::string::npos);
  // The gradients that were accumulated until then stay, so only what is left is compared.
  const NetResult next = run.result([&] { run.pipelined(devices, {}); });
  RC_ASSERT(next.error.empty());
  RC_ASSERT(next.hazards.empty());
  RC_ASSERT(next.kept == 0);
  RC_ASSERT(next.left == 0);
}

}  // namespace
}  // namespace ferry::test
