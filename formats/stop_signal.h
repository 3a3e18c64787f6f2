// Handles Ctrl-C in the commands of ferry that can end early (cli/console/stop.h), in ferry-train
// and in hunts (verify/hunt). The first signal asks the program to end, and to report or save what
// is done so far. The second one ends the program at once.
//
// SIGINT and SIGTERM are treated the same. A signal that was ignored when the program started
// (nohup, a shell's `&`) stays ignored.
#pragma once

namespace ferry {

// Starts to listen; call it once in a process. The first signal writes `text` to stderr if that is
// a terminal. `text` is not copied and must stay valid.
void listen_for_stop_signal(const char* text);

// Returns the signal that asked to stop; 0 if none did. Any thread may call it.
int stop_signal();

}  // namespace ferry
