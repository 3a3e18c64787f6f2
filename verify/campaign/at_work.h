// The number of the program that a campaign's thread is working on, for a message about a crash
// (verify/hunt/crash.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace ferry::verify {

inline constexpr std::uint64_t kNoProgram = ~std::uint64_t{0};

// Returns the number for the calling thread, or kNoProgram. A signal handler may read it.
inline std::atomic<std::uint64_t>& program_at_work() {
  thread_local std::atomic<std::uint64_t> number{kNoProgram};
  return number;
}

// Sets the number for the calling thread while it lives.
class AtWork {
 public:
  explicit AtWork(std::uint64_t number) { program_at_work() = number; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { program_at_work() = kNoProgram; }
};

}  // namespace ferry::verify
