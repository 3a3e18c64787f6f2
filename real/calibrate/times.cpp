#include "real/calibrate/times.h"

#include "ferry/capture.h"
#include "real/train/workload.h"

namespace ferry::real::calibrate {

TimesTable measure_times(const train::Options& model, std::int64_t rounds) {
  const auto workload = train::make_workload(model);
  workload->module().train();
  TimeSamples samples;
  for (std::int64_t round = 0; round <= rounds; ++round) {
    const train::Batch batch = workload->batch(round);
    Program program = capture_loss(
        workload->module(), {{"input", batch.input}, {"target", batch.target}},
        [&] { return workload->loss(batch); }, CaptureOptions().name(train::name(model.model)));
    if (round > 0) samples.add(std::move(program));
    workload->module().zero_grad();
  }
  return {.device = "", .about = workload->identity(), .times = samples.times()};
}

}  // namespace ferry::real::calibrate
