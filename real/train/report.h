// Reports a training to the user: lines for machines, or a progress bar and a summary.
//
// stdout is the result: with --json a line a step, else one line at the end. Anything else goes to
// stderr; the progress bar only where that is a terminal, without colour under NO_COLOR. A loss is
// printed with as many digits as tell its bits from any other's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "real/train/options.h"
#include "real/train/workload.h"

namespace ferry::real::train {

struct StepReport {
  std::int64_t step = 0;  // 1 is the first
  float loss = 0;
  double seconds = 0;
  double forward_backward_seconds = 0;  // the part before the optimizer
  std::int64_t peak_bytes = 0;          // peak of the device tier
  std::int64_t reserved_bytes = 0;      // held by its caching allocator; 0 on a CPU
  std::int64_t rss_bytes = 0;           // peak resident size of the process
  std::int64_t moved_bytes = 0;         // bytes to the host and back
};

// One line, without its end. A loss that is NaN or infinite is null.
std::string to_json(const StepReport& report);

class Reporter {
 public:
  Reporter(const Options& options, const Workload& workload);

  void step(const StepReport& report);
  // How the training ended: "stopped by SIGINT", "saved to FILE", …; may be empty.
  void summary(const std::string& ending);
  // Ends the progress bar's line; call it before other output to stderr.
  void clear();

 private:
  void draw(const StepReport& report);
  std::string rate(double seconds, std::int64_t steps) const;

  Options options_;
  const char* items_;
  std::int64_t items_per_step_;
  bool bar_;
  bool colour_;
  std::int64_t steps_ = 0;
  float first_loss_ = 0;
  StepReport last_;
  StepReport most_;  // bytes: the largest of any step; seconds: the sum over all steps
};

}  // namespace ferry::real::train
