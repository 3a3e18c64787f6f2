// Guards that are destroyed after their thread's own variables: those in statics, at exit.
//
// What a guard restores is a thread_local of LibTorch's, and a thread's variables die before the
// program's statics do. A guard that comes that late has nothing left to restore, and must not
// look.
#pragma once

#include <memory>
#include <utility>

namespace ferry::real {

// For a guard's constructor: from now on this thread's end is noticed.
void watch_thread_end();

// Whether the variables of the calling thread, which was watched, are gone.
bool thread_has_ended();

// Until the process is gone, `state` is not destroyed. (A leak checker finds it.)
void keep_for_ever(std::shared_ptr<void> state);

// For a guard's destructor: at the thread's end `state` is left as it is, with all that it owns.
template <class State>
void leave_at_thread_end(std::unique_ptr<State>& state) {
  if (state && thread_has_ended()) keep_for_ever(std::move(state));
}

}  // namespace ferry::real
