// The core's lock in a simulation. It excludes nobody, for a simulation has one thread and its
// tasks run to their ends; so whoever locks it twice would wait for itself for ever. It keeps count
// of how it is used, and the machine reports what a program with threads would not survive:
//
//     a lock taken by the thread that holds it, or given back by one that does not
//     a lock that is still held when the machine goes
//     a device storage dropped, or host bytes allocated, under a lock: a deleter is anybody's code,
//     and an allocation waits
//
// The counts are the thread's, because a mutex knows no machine: a thread runs one simulation at a
// time, and each one begins and ends without a lock.
#pragma once

#include <utility>

namespace ferry::sim {

struct Locks {
  int held = 0;
  const char* misuse = nullptr;  // the first one
};

inline Locks& locks() {
  thread_local Locks of_thread;
  return of_thread;
}

class SimMutex {
 public:
  void lock() {
    if (std::exchange(held_, true)) {
      misused("a lock is taken by the thread that holds it");
    } else {
      ++locks().held;
    }
  }
  void unlock() {
    if (std::exchange(held_, false)) {
      --locks().held;
    } else {
      misused("a lock is given back that is not held");
    }
  }

 private:
  static void misused(const char* how) {
    if (!locks().misuse) locks().misuse = how;
  }

  bool held_ = false;
};

}  // namespace ferry::sim
