// Reports a training to the user: JSON lines for programs, or a progress bar and a summary.
//
// stdout has the result: with --json one line per step, otherwise one line at the end. Everything
// else goes to stderr. The progress bar is shown only on a terminal, without colour if NO_COLOR is
// set. A loss is printed with enough digits to determine its bits.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "real/train/options.h"
#include "real/train/workload.h"

namespace ferry::real::train {

struct StepReport {
  std::int64_t step = 0;  // the first is 1
  float loss = 0;
  double seconds = 0;
  double forward_backward_seconds = 0;  // time before the optimizer
  std::int64_t peak_bytes = 0;          // peak of the device's live bytes
  std::int64_t reserved_bytes = 0;      // held by the caching allocator; 0 on a CPU
  std::int64_t rss_bytes = 0;           // peak resident size of the process
  std::int64_t moved_bytes = 0;         // bytes to the host and back
};

// Returns one line, without its end. A loss that is NaN or infinite becomes null.
std::string to_json(const StepReport& report);

class Reporter {
 public:
  Reporter(const Options& options, const Workload& workload);

  void step(const StepReport& report);
  // `ending` says how the training ended: "stopped by SIGINT", "saved to FILE", …; it may be empty.
  void summary(const std::string& ending);
  // Removes the line of the progress bar. Call it before other output to stderr.
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
  StepReport most_;  // bytes: the largest of any step; seconds: the sum of all steps
};

}  // namespace ferry::real::train
