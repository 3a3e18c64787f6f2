// The program that a thread of a campaign tries, runs again or makes smaller: for whoever tells of
// a crash.
#pragma once

#include <atomic>
#include <cstdint>

namespace ferry::verify {

inline constexpr std::uint64_t kNoProgram = ~std::uint64_t{0};

// The calling thread's; kNoProgram: it is in none. A signal's handler may read it.
inline std::atomic<std::uint64_t>& program_at_work() {
  thread_local std::atomic<std::uint64_t> number{kNoProgram};
  return number;
}

// While it lives, the calling thread works on that program.
class AtWork {
 public:
  explicit AtWork(std::uint64_t number) { program_at_work() = number; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { program_at_work() = kNoProgram; }
};

}  // namespace ferry::verify
