#include "real/train/capture_step.h"

#include <fmt/core.h>

#include <cstdio>
#include <variant>

#include "ferry/capture.h"
#include "formats/program_file.h"
#include "real/train/workload.h"

namespace ferry::real::train {

void capture_step(const Options& options) {
  const auto workload = make_workload(options);
  workload->module().train();
  const Batch batch = workload->batch(0);
  const Program program = capture_loss(
      workload->module(), {{"input", batch.input}, {"target", batch.target}},
      [&] { return workload->loss(batch); },
      CaptureOptions().name(name(options.model)).about(workload->identity()));
  write_program(options.capture, program);
  std::size_t ops = 0;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      ops += std::holds_alternative<Op>(statement.action) ? 1 : 0;
    }
  }
  fmt::print("{}: {} ops\n", options.capture.string(), ops);
}

}  // namespace ferry::real::train
