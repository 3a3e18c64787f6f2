// Assertions of the core that stay on in release builds. Each says in words what must hold.
//
//   invariant(device.exists(parcel.kept), "a source in the window is kept", Step::kEvict);
//
// An assertion that fails is a bug in Ferry. Later results may be wrong, so the process ends. What
// a user or the environment can cause (options, a failing call, no memory, an exception from user
// code) is never an assertion, but an error (shared/seam/error.h).
//
// A failed assertion does not hide an error of the user. If an exception is being handled, its
// message is printed too. If an exception is still in flight, only its handler can read it: the
// assertion then prints its own message, and the process ends at the next assertion of the thread
// after that.
//
// The mutation tests run cores that are wrong on purpose. They set a handler that records the
// failed assertion and returns, and the core goes on as if there were no assertion.
//
// For each assertion a test in tests/shared shows that it can fail; tests/house checks this.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "shared/seam/step.h"

namespace ferry {

struct BrokenInvariant {
  const char* words = "";   // the condition that does not hold
  Step step = Step::kUser;  // the step that relies on it; kUser: none
  std::string_view file;    // the path, from shared/ on
  unsigned line = 0;
};

// Handles a failed assertion. If it returns, the core goes on. It may be called on any thread.
using InvariantHandler = void (*)(const BrokenInvariant&) noexcept;

namespace invariant_detail {

inline std::atomic<bool> overdue = false;  // a thread has to end the process
inline thread_local bool overdue_here = false;

// Cuts the path down to the part from shared/ on.
constexpr std::string_view path_of(std::string_view file) {
  const std::size_t at = file.rfind("shared/");
  return at == std::string_view::npos ? file : file.substr(at);
}

inline void tell_handled_exception() noexcept {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "  while this error was handled: %s\n", error.what());
  } catch (...) {
    std::fputs("  while an error was handled that is no std::exception\n", stderr);
  }
}

inline void tell(const BrokenInvariant& broken) noexcept {
  std::fprintf(stderr, "ferry: this does not hold: %s\n  at %.*s:%u", broken.words,
               static_cast<int>(broken.file.size()), broken.file.data(), broken.line);
  if (broken.step != Step::kUser) {
    const std::string_view step = name(broken.step);
    std::fprintf(stderr, ", step `%.*s`", static_cast<int>(step.size()), step.data());
  }
  std::fputc('\n', stderr);
  tell_handled_exception();
  std::fputs(
      "  this is a fault of Ferry's, not of your program: please report it with these lines\n",
      stderr);
}

}  // namespace invariant_detail

// The default handler.
[[gnu::cold, gnu::noinline]] inline void end_process(const BrokenInvariant& broken) noexcept {
  invariant_detail::tell(broken);
  if (std::uncaught_exceptions() == 0) std::abort();
  std::fputs("  an error is on its way to your program, which comes first\n", stderr);
  invariant_detail::overdue_here = true;
  invariant_detail::overdue.store(true, std::memory_order_relaxed);
}

namespace invariant_detail {

inline std::atomic<InvariantHandler> handler = end_process;

// Called if an assertion failed, or if some thread still has to end the process.
[[gnu::cold, gnu::noinline]] inline void stop(bool holds, const char* words, Step step,
                                              const char* file, unsigned line) noexcept {
  if (!holds) handler.load(std::memory_order_acquire)({words, step, path_of(file), line});
  if (!overdue_here || std::uncaught_exceptions() > 0) return;
  std::fputs("ferry: the process ends for what did not hold before\n", stderr);
  std::abort();
}

}  // namespace invariant_detail

// Sets the handler and returns the previous one.
inline InvariantHandler set_invariant_handler(InvariantHandler handler) noexcept {
  return invariant_detail::handler.exchange(handler, std::memory_order_acq_rel);
}

// Asserts a condition. `words` state it, and `step` is the step of the core that relies on it. It
// is inlined: as a call it would pass five arguments each time that the condition holds.
[[gnu::always_inline]] inline void invariant(bool holds, const char* words, Step step = Step::kUser,
                                             const char* file = __builtin_FILE(),
                                             unsigned line = __builtin_LINE()) noexcept {
  if (holds && !invariant_detail::overdue.load(std::memory_order_relaxed)) return;
  invariant_detail::stop(holds, words, step, file, line);
}

}  // namespace ferry
