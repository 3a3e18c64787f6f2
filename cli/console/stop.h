// Ctrl-C (formats/stop_signal.h): a command ends, and tells what is done so far.
#pragma once

#include <streambuf>
#include <string_view>
#include <vector>

#include "cli/console/exit_codes.h"

namespace ferry::cli {

// From now on. Once in a process.
void listen_for_stop();

// On any thread.
bool is_stopped();

// Once is_stopped(): says by what, and what was done by then ("3 of 9 policies"). The exit code is
// the one that shells expect.
ExitCode told_stopped(std::string_view done);

// stdin, handed out as it comes (a pipe's reader sees a line when it is written) and at its end
// where the user asked to stop, which a waiting read would not notice.
class StoppableInput final : public std::streambuf {
 public:
  StoppableInput();

 private:
  int_type underflow() override;
  std::streamsize xsgetn(char* into, std::streamsize most) override;

  std::vector<char> bytes_;
};

}  // namespace ferry::cli
