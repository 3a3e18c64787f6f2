#include "real/calibrate/host.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <sstream>

namespace ferry::real::calibrate {

std::string field_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    if (line.find(':') != std::string::npos && at != std::string::npos) return line.substr(at);
  }
  return "";
}

std::int64_t threads() { return at::get_num_threads(); }

Machine host_machine() {
  Machine machine;
  machine.name = field_of("/proc/cpuinfo", "model name");
  if (machine.name.empty()) machine.name = "unknown CPU";
  utsname system{};
  machine.driver =
      uname(&system) == 0 ? fmt::format("{} {}", system.sysname, system.release) : "unknown kernel";
  std::int64_t kibibytes = 0;
  std::istringstream(field_of("/proc/meminfo", "MemTotal")) >> kibibytes;
  machine.memory_bytes = machine.host_memory_bytes = kibibytes << 10;
  machine.host_threads = threads();
  return machine;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace ferry::real::calibrate
