#include "vgpu/run/one_run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "sim/check/report_json.h"
#include "vgpu/run/child.h"
#include "vgpu/run/verdict.h"

namespace ferry::vgpu {

RunFile::RunFile(const std::string& kept) : path_(kept), is_kept_(!kept.empty()) {
  if (is_kept_) return;
  std::string name = (std::filesystem::temp_directory_path() / "ferry-run-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) throw std::system_error(errno, std::generic_category(), "cannot write " + name);
  ::close(file);
  path_ = name;
}

RunFile::~RunFile() {
  std::error_code ignored;
  if (!is_kept_) std::filesystem::remove(path_, ignored);
}

int Run::exit_code() const {
  if (status != kOk) return status;
  return report.violations.empty() ? kOk : kViolated;
}

Run run_once(const Options& options, const Setting& setting, const std::filesystem::path& libraries,
             const std::filesystem::path& output) {
  const RunFile log(options.log);
  const RunFile times("");
  Run run;
  run.status = run_script(options, setting, libraries, {log.path(), times.path(), output});
  run.used = std::filesystem::exists(log.path()) && !std::filesystem::is_empty(log.path());
  if (run.used) run.report = judge(log.path(), options.log);
  run.summary = read_summary(times.path(), setting.card->hardware.name);
  return run;
}

nlohmann::ordered_json to_json(const Run& run) {
  nlohmann::ordered_json json = check::to_json(run.report);
  if (run.summary) json["simulated"] = to_json(*run.summary);
  return json;
}

}  // namespace ferry::vgpu
