#include "real/train/loop.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <torch/optim/adamw.h>

#include <csignal>
#include <memory>
#include <string>

#include "formats/atomic_file.h"
#include "formats/stop_signal.h"
#include "real/log/log_streams.h"
#include "real/train/capture_step.h"
#include "real/train/checkpoint.h"
#include "real/train/deterministic.h"
#include "real/train/exit_code.h"
#include "real/train/memory.h"
#include "real/train/policy.h"
#include "real/train/report.h"
#include "real/train/step.h"
#include "real/train/step_clock.h"
#include "real/train/workload.h"

namespace ferry::real::train {

namespace {

class Training {
 public:
  Training(const Options& options, LogStreams* log)
      : options_(options),
        log_(log),
        workload_(make_workload(options)),
        optimizer_(workload_->module().parameters(),
                   torch::optim::AdamWOptions(options.learning_rate)) {
    workload_->module().train();
    if (!options.resume.empty()) done_ = resume_state(options.resume, *workload_, optimizer_);
    policy_ = std::make_unique<Policy>(options, *workload_);
    reporter_ = std::make_unique<Reporter>(options, *workload_);
  }

  int run() {
    try {
      while (done_ < options_.steps && stop_signal() == 0) {
        reporter_->step(step());
        if (log_) log_->check();
        if (options_.save_every > 0 && done_ % options_.save_every == 0) save();
      }
    } catch (...) {
      reporter_->clear();
      throw;
    }
    return end();
  }

 private:
  StepReport step() {
    const StepMemory memory(device(options_));
    StepClock clock(device(options_));
    StepReport report{.step = done_ + 1};
    const torch::Tensor loss =
        forward_and_backward(*workload_, *policy_, workload_->batch(done_), options_.microbatches);
    clock.backward_issued();
    optimizer_.step();
    optimizer_.zero_grad();
    report.loss = loss.item<float>();  // this waits for the device
    report.seconds = clock.seconds();
    report.forward_backward_seconds = clock.forward_backward_seconds();
    report.peak_bytes = memory.peak_bytes();
    report.reserved_bytes = memory.reserved_bytes();
    report.rss_bytes = memory.rss_bytes();
    report.moved_bytes = policy_->end_step();
    ++done_;
    return report;
  }

  void save() {
    if (options_.save.empty() || saved_ == done_) return;
    save_state(options_.save, *workload_, optimizer_, done_);
    saved_ = done_;
  }

  int end() {
    const int signal = stop_signal();
    save();
    policy_->finish();
    std::string ending;
    if (signal != 0) ending = signal == SIGTERM ? "stopped by SIGTERM" : "stopped by SIGINT";
    if (saved_ >= 0) {
      ending += fmt::format("{}saved to {}", ending.empty() ? "" : ", ", options_.save.string());
    }
    reporter_->summary(ending);
    return signal == 0 ? kOk : kStopped + signal;
  }

  Options options_;
  LogStreams* log_;  // null if there is none
  std::unique_ptr<Workload> workload_;
  torch::optim::AdamW optimizer_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Reporter> reporter_;
  std::int64_t done_ = 0;
  std::int64_t saved_ = -1;
};

}  // namespace

int train(const Options& options) {
  count_memory();
  be_deterministic();
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  for (const std::filesystem::path& file :
       {options.save, options.log, options.decisions, options.trace, options.capture}) {
    require_folder_of(file);
  }
  if (!options.capture.empty()) {
    capture_step(options);
    return kOk;
  }
  listen_for_stop_signal("\nferry: stopping after this step; again to stop at once\n");
  if (options.log.empty()) return Training(options, nullptr).run();
  LogStreams log(options.log, device(options));
  const int code = Training(options, &log).run();
  log.commit();
  return code;
}

}  // namespace ferry::real::train
