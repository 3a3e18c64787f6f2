// Handles guards that are destroyed after the variables of their thread, such as guards in static
// variables at exit.
//
// A guard restores a thread_local variable of LibTorch. The main thread's thread_local variables
// are destroyed before static ones. A guard that is destroyed so late has nothing to restore and
// must not access the variable.
#pragma once

#include <memory>
#include <utility>

namespace ferry::real {

// Call it in the constructor of a guard: from now on the end of this thread is detected.
void watch_thread_end();

// True if the variables of the calling thread, which must be watched, are destroyed.
bool thread_has_ended();

// Keeps `state` until the process ends. A leak checker can still find it.
void keep_for_ever(std::shared_ptr<void> state);

// Call it in the destructor of a guard. At the end of the thread, `state` is kept with all that it
// owns instead of being destroyed.
template <class State>
void leave_at_thread_end(std::unique_ptr<State>& state) {
  if (state && thread_has_ended()) keep_for_ever(std::move(state));
}

}  // namespace ferry::real
