// One run of the script, from the start of its process to its verdict: starts the script, waits for
// it, judges its log, and reads how it ended and what it took. main.cpp and comparison.h call it.
// The log, the summary and the note of child processes are temporary files, except a log that the
// user names.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/check/log_check.h"
#include "sim/peak/log_peak.h"
#include "vgpu/run/ending.h"
#include "vgpu/run/options.h"
#include "vgpu/run/summary.h"

namespace ferry::vgpu {

// A file of the run: the user's, or a temporary one that is deleted with this object. Throws
// std::system_error.
class RunFile {
 public:
  explicit RunFile(const std::string& kept);
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // The path is absolute, because the script may change folders.
  std::filesystem::path path() const { return std::filesystem::absolute(path_); }

 private:
  std::filesystem::path path_;
  bool is_kept_;
};

// Describes what is in no log: so many views of page-locked memory, parts whose views were not
// judged, and child processes that asked for a device; "" if there is nothing.
std::string unjudged_text(std::int64_t views, std::int64_t parts, std::int64_t asking);

struct Run {
  Ending ending;
  bool used = false;             // the GPU was used outside separately judged parts
  bool requires_judged = false;  // from the options
  check::LogReport report;
  peak::LogPeak most_memory;  // without owners if the log has no memory
  std::optional<Summary> summary;

  Judged judged() const;
  // Describes what was done and is in no log; "" if there is nothing.
  std::string unjudged_text() const;
  // Returns whether all of the run had to be judged, and some of it was not.
  bool falls_short() const { return requires_judged && judged() != Judged::kAll; }
  // The script's own exit code, if it is not 0; otherwise that of the verdict.
  int exit_code() const;
};

// The script prints to the file `output`, if that is not empty. Throws std::system_error
// if no process can be started or no file written, and InputError if the log is not a valid log.
Run run_once(const Options& options, const Setting& setting, const std::filesystem::path& libraries,
             const std::filesystem::path& output);

// Returns the verdict, in the form of `ferry check --json`, and what was simulated.
nlohmann::ordered_json to_json(const Run& run);

}  // namespace ferry::vgpu
