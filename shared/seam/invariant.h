// Assertions that stay on in release: what must hold in the core, or must not, each said in words.
//
//   invariant(device.exists(parcel.kept), "a source in the window is kept", Step::kEvict);
//
// One that fails is a fault of Ferry's own, and what is computed after it may be wrong, so the
// process ends. What a user or the environment can cause (options, a failing call, no memory, code
// of the user's that throws) is never an assertion: that is an error (shared/seam/error.h).
//
// A fault of ours never takes an error of the user's along. Where an exception is being handled,
// its message is told beside ours. Where one is still on its way, only its handler can read it: so
// our message is told at once, and the process ends at the thread's next assertion after that.
//
// A laboratory runs cores that are wrong on purpose: it sets a handler that notes what broke and
// returns, and the core goes on as if nothing had been asked. An assertion has no effect otherwise,
// so a core without any of them does the same.
//
// Each assertion is seen to fail by a test in tests/shared, which tests/house compares.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "shared/seam/step.h"

namespace ferry {

struct BrokenInvariant {
  const char* words = "";   // what does not hold
  Step step = Step::kUser;  // the step that was to be taken; kUser: none
  std::string_view file;    // from shared/ on
  unsigned line = 0;
};

// What is done about it. If it returns, the core goes on. It may be called on any thread.
using InvariantHandler = void (*)(const BrokenInvariant&) noexcept;

namespace invariant_detail {

inline std::atomic<bool> overdue = false;  // some thread's process ends at its next assertion
inline thread_local bool overdue_here = false;

// The path as it is in the repository, wherever that is.
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

// The handler unless another one is set.
[[gnu::cold, gnu::noinline]] inline void end_process(const BrokenInvariant& broken) noexcept {
  invariant_detail::tell(broken);
  if (std::uncaught_exceptions() == 0) std::abort();
  std::fputs("  an error is on its way to your program, which comes first\n", stderr);
  invariant_detail::overdue_here = true;
  invariant_detail::overdue.store(true, std::memory_order_relaxed);
}

namespace invariant_detail {

inline std::atomic<InvariantHandler> handler = end_process;

// An assertion failed, or the end of some thread's process is overdue.
[[gnu::cold, gnu::noinline]] inline void stop(bool holds, const char* words, Step step,
                                              const char* file, unsigned line) noexcept {
  if (!holds) handler.load(std::memory_order_acquire)({words, step, path_of(file), line});
  if (!overdue_here || std::uncaught_exceptions() > 0) return;
  std::fputs("ferry: the process ends for what did not hold before\n", stderr);
  std::abort();
}

}  // namespace invariant_detail

// Returns the handler that was set before.
inline InvariantHandler set_invariant_handler(InvariantHandler handler) noexcept {
  return invariant_detail::handler.exchange(handler, std::memory_order_acq_rel);
}

// One condition; `words` say what holds, and `step` names the step of the core that relies on it.
// (As a call it would cost the five arguments each time that it holds.)
[[gnu::always_inline]] inline void invariant(bool holds, const char* words, Step step = Step::kUser,
                                             const char* file = __builtin_FILE(),
                                             unsigned line = __builtin_LINE()) noexcept {
  if (holds && !invariant_detail::overdue.load(std::memory_order_relaxed)) return;
  invariant_detail::stop(holds, words, step, file, line);
}

}  // namespace ferry
