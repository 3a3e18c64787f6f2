// ferry-run: the program behind `ferry run`, for `ferry` itself never sees the virtual GPU.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/printable.h"
#include "sim/check/report_json.h"
#include "sim/check/trace_check.h"
#include "vgpu/run/child.h"
#include "vgpu/run/options.h"
#include "vgpu/run/summary.h"
#include "vgpu/run/verdict.h"

namespace {

using namespace ferry::vgpu;
namespace check = ferry::check;

// The user's file, or one that goes with this object.
class RunFile {
 public:
  explicit RunFile(const std::string& kept) : path_(kept), is_kept_(!kept.empty()) {
    if (is_kept_) return;
    std::string name = (std::filesystem::temp_directory_path() / "ferry-run-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    if (file < 0) throw std::system_error(errno, std::generic_category(), "cannot write " + name);
    ::close(file);
    path_ = name;
  }
  ~RunFile() {
    std::error_code ignored;
    if (!is_kept_) std::filesystem::remove(path_, ignored);
  }
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // The script may change folders.
  std::filesystem::path path() const { return std::filesystem::absolute(path_); }

 private:
  std::filesystem::path path_;
  bool is_kept_;
};

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "ferry run: %s\n", ferry::printable(what).c_str());
  return code;
}

// Of a script that ended before it used the GPU as well.
void write_verdict(const check::TraceReport& report, const std::optional<Summary>& summary,
                   const Options& options) {
  const auto write = [](const std::string& file, const nlohmann::ordered_json& json) {
    if (!file.empty()) ferry::write_file(file, json.dump(2, ' ', /*ensure_ascii=*/true) + "\n");
  };
  nlohmann::ordered_json json = check::to_json(report);
  if (summary) json["simulated"] = to_json(*summary);
  write(options.json, json);
  write(options.sarif, check::to_sarif(report, options.log));
}

int run(const Options& options) {
  const std::filesystem::path libraries =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vgpu";
  const std::string why = why_not(options, libraries);
  if (!why.empty()) return complain(why, kResourceMissing);
  for (const std::string& file : {options.json, options.sarif}) {
    if (!file.empty()) ferry::require_folder_of(file);
  }
  const RunFile log(options.log);
  const RunFile times("");
  const int status = run_script(options, libraries, {log.path(), times.path()});
  check::TraceReport report;
  const bool used = std::filesystem::exists(log.path()) && !std::filesystem::is_empty(log.path());
  if (used) report = judge(log.path(), options.log);
  const std::optional<Summary> summary = read_summary(times.path(), options.card.name);
  if (summary) std::fprintf(stderr, "ferry run: %s\n", to_string(*summary).c_str());
  write_verdict(report, summary, options);
  return status != kOk ? status : report.violations.empty() ? kOk : kViolated;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<Options> options = parse_options(argc, argv);
    return options ? run(*options) : kOk;
  } catch (const ferry::InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const std::system_error& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const std::exception& error) {
    return complain(error.what(), kInternal);
  }
}
