// Tells how a run ended, and how much of it was judged. The last line of each run says this
// (verdict.h).
//
//   the script's end, sys.exit, an exception     Python comes to its own end: all is reported
//   os._exit, exec of another program            Python does not: the log until then is judged,
//   a signal, from a time limit for example      and there are no times
//   a child process                              has no device, and is counted if it asks for one
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ferry::vgpu {

struct Ending {
  int status = 0;           // the script's own, or kStoppedBase plus the signal that ended it
  bool reached = false;     // Python came to its own end
  std::int64_t asking = 0;  // processes that asked for a device and have none
  // Parts of the run that were judged separately, by whoever began them (pytest_ferry), and how
  // many of them used CUDA.
  std::int64_t parts = 0;
  std::int64_t parts_used = 0;
  std::int64_t parts_unjudged = 0;  // those whose views count as not judged (sim/check/views.h)
};

// kInPart: some of the run's work is in no log, or was done in a way that the log does not see.
enum class Judged : std::uint8_t { kAll, kInPart, kNothing };
std::string_view name(Judged judged);

// `summary` is the file that the process leaves (summary.h). `asking` is the file to which
// processes without a device add themselves (vgpu/runtime/asking.h). Throws
// nlohmann::json::exception if the first is no summary.
Ending read_ending(int status, const std::filesystem::path& summary,
                   const std::filesystem::path& asking);

// Cuts a log that its process did not end after its last whole line (vgpu/python/lasting_file.h).
// Throws std::system_error.
void cut_to_lines(const std::filesystem::path& log);

// Returns "until SIGKILL ended the script"; "" if Python came to its end.
std::string until_text(const Ending& ending);
// Returns "a child process asked for a device, which it does not have"; "" if none did.
std::string asking_text(std::int64_t asking);
// Returns "what the host did through 2 views of page-locked memory … while work on it was pending";
// "" if there are no views.
std::string views_text(std::int64_t views);

}  // namespace ferry::vgpu
