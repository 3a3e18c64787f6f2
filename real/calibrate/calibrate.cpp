#include "real/calibrate/calibrate.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "formats/atomic_file.h"
#include "real/calibrate/hardware_file.h"
#include "real/calibrate/host.h"
#include "real/calibrate/kernels.h"
#include "real/calibrate/probe.h"
#include "real/calibrate/rates.h"
#include "real/calibrate/report.h"
#include "real/calibrate/times.h"
#include "real/train/deterministic.h"
#include "real/train/memory.h"

namespace ferry::real::calibrate {
namespace {

About about_of(const Options& options) {
  About about{.device = options.cuda ? "cuda" : "cpu", .host_tier = "memory", .date = options.date};
  if (options.cuda) about.host_tier = "pinned memory";
  if (!options.disk.empty()) about.host_tier = "disk";
  if (about.date.empty()) about.date = today();
  return about;
}

// Shows what is being measured, in a line on stderr if that is a terminal. The line is removed at
// the end.
class StageLine {
 public:
  StageLine() = default;
  ~StageLine() {
    if (terminal_) show("\r\033[K");
  }
  StageLine(const StageLine&) = delete;
  StageLine& operator=(const StageLine&) = delete;

  void begin(const char* what) const {
    if (terminal_) show(fmt::format("\rmeasuring {}\033[K", what));
  }

 private:
  static void show(const std::string& text) {
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
  }

  const bool terminal_ = isatty(STDERR_FILENO) != 0;
};

Measured measure(const Options& options, const StageLine& stage) {
  const c10::Device device =
      options.cuda ? c10::Device(c10::DeviceType::CUDA, 0) : c10::Device(c10::DeviceType::CPU);
  const Effort effort = effort_of(options.small, options.rounds);
  const auto probe = make_probe(device.type(), options.disk);
  Measured measured;
  measured.machine = probe->machine();
  stage.begin("operators: launches, memory, matrix products");
  measure_rates(device, effort, measured);
  stage.begin("blocks of host memory");
  for (const AllocationTime& each : probe->host_blocks(effort)) {
    measured.allocations.push_back(each);
  }
  stage.begin("copies, alone and beside each other");
  measured.copies = probe->copies(effort);
  return measured;
}

}  // namespace

void calibrate(const Options& options) {
  require_folder_of(options.output);
  require_folder_of(options.times);
  require_folder_of(options.kernels);
  // Counts memory as a training does.
  train::count_memory();
  train::be_deterministic();
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const About about = about_of(options);
  TimesTable table;
  std::vector<KernelUse> kernels;
  Measured measured;
  {
    const StageLine stage;
    stage.begin("the model's operators");
    if (options.model) table = measure_times(*options.model, options.rounds);
    stage.begin("the model's kernels");
    if (!options.kernels.empty()) kernels = measure_kernels(*options.model);
    measured = measure(options, stage);
  }
  table.device = measured.machine.name;
  table.about.emplace_back("--threads", fmt::format("{}", measured.machine.host_threads));
  table.about.emplace_back("date", about.date);
  const std::string text =
      options.json ? to_json(measured, about, table.times.size()) : to_table(measured, about);
  if (!options.output.empty()) write_file(options.output, to_toml(measured, about));
  if (!options.times.empty()) write_times(options.times, table);
  if (!options.kernels.empty()) {
    write_file(options.kernels, kernels_json(kernels, measured.machine.name, about.date));
  }
  fmt::print("{}", text);
  if (options.model && !options.json) fmt::print("\n{} kernel times\n", table.times.size());
}

}  // namespace ferry::real::calibrate
