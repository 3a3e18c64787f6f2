// Ctrl-C: the first one asks a command to end and report what is done so far, the second one ends
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

// Begins to listen. Call it once in a process.
void listen_for_stop();

// May be called on any thread.
bool is_stopped();

// Call it once is_stopped(): reports the signal, and what was done by then ("3 of 9 policies").
// Returns the exit code that shells expect.
ExitCode told_stopped(std::string_view done);

// Reads stdin as it comes (the reader of a pipe sees a line when it is written), and ends when the
// user asks to stop, which a blocked read would not notice.
class StoppableInput final : public std::streambuf {
 public:
  StoppableInput();

 private:
  int_type underflow() override;
  std::streamsize xsgetn(char* into, std::streamsize most) override;

  std::vector<char> bytes_;
};

}  // namespace ferry::cli
