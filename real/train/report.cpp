#include "real/train/report.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "scenarios/units.h"

namespace ferry::real::train {

std::string to_json(const StepReport& report) {
  const nlohmann::ordered_json json = {
      {"schema", 1},
      {"step", report.step},
      {"loss", report.loss},
      {"seconds", report.seconds},
      {"forward_backward_seconds", report.forward_backward_seconds},
      {"peak_bytes", report.peak_bytes},
      {"reserved_bytes", report.reserved_bytes},
      {"rss_bytes", report.rss_bytes},
      {"moved_bytes", report.moved_bytes}};
  return json.dump();
}

Reporter::Reporter(const Options& options, const Workload& workload)
    : options_(options),
      items_(workload.items()),
      items_per_step_(workload.items_per_step()),
      bar_(isatty(STDERR_FILENO) != 0) {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = no_colour == nullptr || *no_colour == '\0';
}

void Reporter::step(const StepReport& report) {
  if (steps_++ == 0) first_loss_ = report.loss;
  last_ = report;
  most_.seconds += report.seconds;
  most_.peak_bytes = std::max(most_.peak_bytes, report.peak_bytes);
  most_.rss_bytes = std::max(most_.rss_bytes, report.rss_bytes);
  most_.moved_bytes = std::max(most_.moved_bytes, report.moved_bytes);
  if (options_.json) {
    fmt::print("{}\n", to_json(report));
    std::fflush(stdout);  // readers then get each line at once
  }
  if (bar_) draw(report);
}

std::string Reporter::rate(double seconds, std::int64_t steps) const {
  const auto items = static_cast<double>(steps * items_per_step_);
  return fmt::format("{:.0f} {}/s", items / std::max(seconds, 1e-9), items_);
}

void Reporter::draw(const StepReport& report) {
  constexpr std::int64_t kWidth = 20;
  const std::int64_t full = kWidth * report.step / std::max<std::int64_t>(options_.steps, 1);
  const std::string bar(static_cast<std::size_t>(std::clamp<std::int64_t>(full, 0, kWidth)), '#');
  fmt::print(stderr, "\r{}{:.<{}}{} {}/{}  loss {:.4f}  {}  peak {}\033[K",
             colour_ ? "\033[32m" : "", bar, kWidth, colour_ ? "\033[0m" : "", report.step,
             options_.steps, report.loss, rate(report.seconds, 1), format_bytes(report.peak_bytes));
  std::fflush(stderr);
}

void Reporter::clear() {
  if (bar_ && steps_ > 0) fmt::print(stderr, "\r\033[K");
}

void Reporter::summary(const std::string& ending) {
  clear();
  const bool by_stage = options_.stages > 0 && !options_.plan.empty();  // each has its own policy
  std::string line = fmt::format("{} {}: ", train::name(options_.model),
                                 by_stage ? "by stages" : train::name(options_.policy));
  if (steps_ == 0) {
    line += "no step was left to do";
  } else {
    line += fmt::format(
        "step {}, loss {:.4f} to {:.4f}, {}, {} a step, peak {}, resident {}, moved {} a step",
        last_.step, first_loss_, last_.loss, rate(most_.seconds, steps_),
        format_time(static_cast<std::int64_t>(most_.seconds * 1e9) / steps_),
        format_bytes(most_.peak_bytes), format_bytes(most_.rss_bytes),
        format_bytes(most_.moved_bytes));
  }
  if (!ending.empty()) line += "; " + ending;
  // If stdout is for programs, people read stderr.
  fmt::print(options_.json ? stderr : stdout, "{}\n", line);
}

}  // namespace ferry::real::train
