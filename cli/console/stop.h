// Stops a command on Ctrl-C or SIGTERM (formats/stop_signal.h): it ends early and reports what it
// has done so far.
#pragma once

#include <streambuf>
#include <string_view>
#include <vector>

#include "cli/console/exit_codes.h"

namespace ferry::cli {

// Starts to listen for the signals. Call it once in a process.
void listen_for_stop();

// True once a signal came. Any thread may call it.
bool is_stopped();

// Call it once is_stopped() is true. Prints which signal came and what was done by then
// ("3 of 9 policies"). Returns the exit code that shells expect.
ExitCode told_stopped(std::string_view done);

// Reads stdin and passes data on as it arrives, so a line in a pipe is seen when it is written.
// After a stop signal it reports the end of the input; a blocking read would not notice the signal.
class StoppableInput final : public std::streambuf {
 public:
  StoppableInput();

 private:
  int_type underflow() override;
  std::streamsize xsgetn(char* into, std::streamsize most) override;

  std::vector<char> bytes_;
};

}  // namespace ferry::cli
