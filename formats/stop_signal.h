// Ctrl-C, for every program of Ferry's: the first one asks to end and to tell or save what is done
// so far, the second one ends the program where it stands.
//
// SIGINT and SIGTERM alike. A signal that the program was started with ignoring (nohup, a shell's
// `&`) stays ignored.
#pragma once

namespace ferry {

// From now on. Once in a process. The first signal writes `text` on stderr where that is a
// terminal; it is not copied.
void listen_for_stop_signal(const char* text);

// The signal that asked to stop, 0 while none did. On any thread.
int stop_signal();

}  // namespace ferry
