// Ctrl-C: the first one asks a command to end and to tell what is done so far, the second one ends
// the program.
//
// SIGINT and SIGTERM alike. A signal that the program was started with ignoring (nohup, a shell's
// `&`) stays ignored.
#pragma once

#include <streambuf>
#include <string_view>
#include <vector>

#include "cli/exit_codes.h"

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
