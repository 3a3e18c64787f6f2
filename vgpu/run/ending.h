// How a run ended, and how much of what it did was judged. Whatever way it ends, its last line says
// so (verdict.h).
//
//   the script's end, sys.exit, an exception     Python comes to its own end: all is told
//   os._exit, exec of another program            it does not: the log until then is judged, and
//   a signal, of a time limit say                there are no times
//   a child process                              has no device; one that asked for it is counted
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ferry::vgpu {

struct Ending {
  int status = 0;           // the script's own; ended by a signal, kStoppedBase and the signal
  bool reached = false;     // Python's own end
  std::int64_t asking = 0;  // processes that asked for a device, and have none
  // Parts of the run that whoever began them judged by themselves (pytest_ferry), and those of them
  // that used CUDA.
  std::int64_t parts = 0;
  std::int64_t parts_used = 0;
  std::int64_t parts_unjudged = 0;  // in which views count as not judged (sim/check/views.h)
};

// kInPart: some of what was done is in no log, or was done by what the log does not see.
enum class Judged : std::uint8_t { kAll, kInPart, kNothing };
std::string_view name(Judged judged);

// `summary`: what the process leaves (summary.h). `asking`: the file that is asked in
// (vgpu/runtime/asking.h). Throws nlohmann::json::exception if the first is no summary.
Ending read_ending(int status, const std::filesystem::path& summary,
                   const std::filesystem::path& asking);

// Cuts a log that its process did not end to the lines that are whole
// (vgpu/python/lasting_file.h). Throws std::system_error.
void cut_to_lines(const std::filesystem::path& log);

// "until SIGKILL ended the script"; "" where Python came to its end.
std::string until_text(const Ending& ending);
// "a child process asked for a device, which it does not have"; "" of none.
std::string asking_text(std::int64_t asking);
// "what the host did through 2 views of page-locked memory while work on it was pending"; "" of
// none.
std::string views_text(std::int64_t views);

}  // namespace ferry::vgpu
