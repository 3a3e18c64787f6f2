// The core's lock in a simulation. It excludes nobody, because a simulation has one thread and its
// tasks run to their ends. Somebody who locks it twice would wait for ever. So the lock counts how
// it is used, and the machine reports what would fail in a program with threads:
//
//     a lock taken by the thread that holds it, or given back by one that does not
//     a lock that is still held when the machine ends
//     a device storage dropped, or host memory allocated, under a lock: a deleter can be anybody's
//     code, and an allocation waits
//
// The counts belong to the thread, because a mutex knows no machine. A thread runs one simulation
// at a time, and each one begins and ends without a lock.
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
