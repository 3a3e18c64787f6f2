// One run of the script, from its process to its verdict.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/check/trace_check.h"
#include "vgpu/run/ending.h"
#include "vgpu/run/options.h"
#include "vgpu/run/summary.h"

namespace ferry::vgpu {

// The user's file, or one that goes with this object. Throws std::system_error.
class RunFile {
 public:
  explicit RunFile(const std::string& kept);
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // The script may change folders.
  std::filesystem::path path() const { return std::filesystem::absolute(path_); }

 private:
  std::filesystem::path path_;
  bool is_kept_;
};

struct Run {
  Ending ending;
  bool used = false;             // the GPU, and not in parts that were judged by themselves alone
  bool requires_judged = false;  // as the options have it
  check::TraceReport report;
  std::optional<Summary> summary;

  Judged judged() const;
  // What was done and is in no log, in words; "" of nothing.
  std::string unjudged_text() const;
  // What has to be judged was not.
  bool falls_short() const { return requires_judged && judged() != Judged::kAll; }
  // The script's own, if it is not 0; else what the verdict says.
  int exit_code() const;
};

// Throws std::system_error where there is no such interpreter, InputError for what is no log. What
// the script prints goes to `output`, if there is one.
Run run_once(const Options& options, const Setting& setting, const std::filesystem::path& libraries,
             const std::filesystem::path& output);

// The verdict, as `ferry check --json` has it, and what was simulated.
nlohmann::ordered_json to_json(const Run& run);

}  // namespace ferry::vgpu
