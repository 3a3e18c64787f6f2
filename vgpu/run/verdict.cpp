#include "vgpu/run/verdict.h"

#include <cstdio>

#include "formats/line_source.h"
#include "formats/printable.h"
#include "formats/text_file.h"

namespace ferry::vgpu {

check::TraceReport judge(const std::filesystem::path& log, const std::string& name) {
  std::ifstream in = open_file(log.string());
  LineSource lines(in, name.empty() ? "the log" : name);
  return check::check_trace(lines);
}

void print(const check::TraceReport& report, const std::string& name) {
  if (!report.violations.empty() && name.empty()) {
    std::fprintf(stderr, "ferry run: (line N) is a line of the log, which --log FILE keeps\n");
  }
  for (const check::TraceViolation& violation : report.violations) {
    std::fprintf(stderr, "ferry run: %s", printable(violation.message).c_str());
    if (violation.count > 1) {
      std::fprintf(stderr, " (%llu times)", static_cast<unsigned long long>(violation.count));
    }
    std::fprintf(stderr, "\n  fix: %s\n", printable(violation.fix).c_str());
  }
  std::fprintf(stderr,
               "ferry run: no GPU, values are the CPU's; %llu operations on %llu streams: "
               "%zu violations%s%s\n",
               static_cast<unsigned long long>(report.scope.operations),
               static_cast<unsigned long long>(report.scope.streams.count),
               report.violations.size(), name.empty() ? "" : ", in ", printable(name).c_str());
}

}  // namespace ferry::vgpu
