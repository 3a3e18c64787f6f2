#include "vgpu/run/verdict.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "formats/line_source.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "scenarios/units.h"
#include "sim/peak/owners_text.h"

namespace ferry::vgpu {

check::LogReport judge(const std::filesystem::path& log, const std::string& name,
                       StreamOpConsumer& also) {
  std::ifstream in = open_file(log.string());
  LineSource lines(in, name.empty() ? "the log" : name);
  return check::check_log(lines, check::LogOptions{.also = &also});
}

void print(const peak::LogPeak& peak) {
  constexpr std::size_t kOwners = 6;  // with the two lines above them
  // Nobody runs out of memory below this, and most scripts that look for races stay there.
  constexpr std::int64_t kWorthALook = 16 << 20;
  if (peak.owners.empty() || peak.bytes < kWorthALook) return;
  const std::string where =
      peak.devices > 1 ? " on cuda:" + std::to_string(peak.device) + ", the fullest" : "";
  std::fprintf(stderr, "ferry run: the peak of %s%s, as requested, by who made it:\n",
               format_bytes(peak.bytes).c_str(), where.c_str());
  std::istringstream lines(peak::owners_text(peak, kOwners));
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "%s\n", printable(line).c_str());
  }
}

void print(const check::LogReport& report, const std::string& name) {
  if ((!report.violations.empty() || !report.unjudged.empty()) && name.empty()) {
    std::fprintf(stderr, "ferry run: (line N) is a line of the log, which --log FILE keeps\n");
  }
  for (const check::LogViolation& violation : report.violations) {
    std::fprintf(stderr, "ferry run: %s", printable(violation.message).c_str());
    if (violation.count > 1) {
      std::fprintf(stderr, " (%llu times)", static_cast<unsigned long long>(violation.count));
    }
    std::fprintf(stderr, "\n  fix: %s\n", printable(violation.fix).c_str());
  }
  for (const check::TraceUnjudged& unjudged : report.unjudged) {
    std::fprintf(stderr, "ferry run: not judged: %s", printable(unjudged.message).c_str());
    if (unjudged.count > 1) {
      std::fprintf(stderr, " (%llu times)", static_cast<unsigned long long>(unjudged.count));
    }
    std::fprintf(stderr, "\n");
  }
}

void print_verdict(const Run& run, const std::string& name) {
  const std::string until = until_text(run.ending);
  std::string text;
  if (run.judged() == Judged::kNothing) {
    text = "nothing was judged: CUDA was not used";
    if (!until.empty()) text += " " + until;
    const std::string asking = asking_text(run.ending.asking);
    if (!asking.empty()) text += ", and " + asking;
  } else {
    const check::LogScope& scope = run.report.scope;
    text = "no GPU, values are the CPU's; ";
    if (run.ending.parts > 0) {
      text += std::to_string(run.ending.parts_used) + " of " + std::to_string(run.ending.parts) +
              " parts used CUDA and were judged by themselves, all else: ";
    }
    text += std::to_string(scope.operations) + " operations on " +
            std::to_string(scope.streams.count) + " streams" + (until.empty() ? "" : " ") + until +
            ": " + std::to_string(run.report.violations.size()) + " violations";
    if (!name.empty()) text += ", in " + printable(name);
    const std::string unjudged = run.unjudged_text();
    if (!unjudged.empty()) text += "; not judged: " + unjudged;
  }
  std::fprintf(stderr, "ferry run: %s\n", text.c_str());
}

}  // namespace ferry::vgpu
