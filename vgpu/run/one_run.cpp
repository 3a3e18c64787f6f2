#include "vgpu/run/one_run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "sim/check/report_json.h"
#include "sim/peak/owners_text.h"
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

Judged Run::judged() const {
  if (!used && ending.parts_used == 0) return Judged::kNothing;
  const bool unseen = ending.asking > 0 || ending.parts_unjudged > 0 || report.unjudged_views > 0;
  return unseen ? Judged::kInPart : Judged::kAll;
}

std::string unjudged_text(std::int64_t views, std::int64_t parts, std::int64_t asking) {
  std::string text;
  const auto add = [&](const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : ", and ") + what;
  };
  add(views_text(views));
  if (parts > 0) {
    add("the views of page-locked memory that the host had in " + std::to_string(parts) +
        " parts while work on it was pending");
  }
  add(asking_text(asking));
  return text;
}

std::string Run::unjudged_text() const {
  return vgpu::unjudged_text(static_cast<std::int64_t>(report.unjudged_views),
                             ending.parts_unjudged, ending.asking);
}

int Run::exit_code() const {
  if (ending.status != kOk) return ending.status;
  if (!report.violations.empty()) return kViolated;
  return falls_short() ? kNotJudged : kOk;
}

Run run_once(const Options& options, const Setting& setting, const std::filesystem::path& libraries,
             const std::filesystem::path& output) {
  const RunFile log(options.log);
  const RunFile times("");
  const RunFile asking("");
  Run run;
  const int status =
      run_script(options, setting, libraries, {log.path(), times.path(), asking.path(), output});
  run.ending = read_ending(status, times.path(), asking.path());
  run.requires_judged = options.requires_judged;
  cut_to_lines(log.path());
  run.used = std::filesystem::exists(log.path()) && !std::filesystem::is_empty(log.path());
  if (run.used) {
    peak::LogPeakFinder finder;
    run.report = judge(log.path(), options.log, finder);
    run.most_memory = finder.peak();
  }
  run.summary = read_summary(times.path(), setting.card->hardware.name);
  return run;
}

nlohmann::ordered_json to_json(const Run& run) {
  nlohmann::ordered_json json = check::to_json(run.report);
  json["run"] = {{"judged", name(run.judged())},
                 {"asking_children", run.ending.asking},
                 {"reached_its_end", run.ending.reached}};
  if (!run.most_memory.owners.empty()) json["peak"] = peak::to_json(run.most_memory);
  if (run.summary) json["simulated"] = to_json(*run.summary);
  return json;
}

}  // namespace ferry::vgpu
