// Ctrl-C: the first one asks the training to stop after its step, the second one ends the program.
//
// SIGINT and SIGTERM alike. A signal that the program was started with ignoring (nohup, a shell's
// `&`) stays ignored.
#pragma once

namespace ferry::real::train {

// Begins to listen. Call it once in a process.
void listen_for_stop();

// The signal that asked to stop; 0 if none did.
int stop_signal();

}  // namespace ferry::real::train
