#include "verify/hunt/crash.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "verify/campaign/at_work.h"

namespace ferry::verify {
namespace {

constexpr std::array<int, 5> kSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Static memory: a signal handler must not allocate.
std::array<char, 512> again_text{};
std::array<struct sigaction, kSignals.size()> before{};

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void put(std::uint64_t number) {
  std::array<char, 20> digits{};
  std::size_t at = digits.size();
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  put(std::string_view(digits.data() + at, digits.size() - at));
}

void restore() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

void tell(int signal) {
  restore();
  if (const std::uint64_t number = program_at_work(); number != kNoProgram) {
    put("\nthe scheduler crashed in program ");
    put(number);
    put("; an exception that leaves a destructor is a crash, too\nagain    ");
    put(again_text.data());
    put(number);
    put("\n");
  }
  ::raise(signal);
}

}  // namespace

TellsCrashes::TellsCrashes(const std::string& again) {
  again_text.fill(0);
  std::strncpy(again_text.data(), again.c_str(), again_text.size() - 1);
  struct sigaction action {};
  action.sa_handler = tell;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before[i]);
}

TellsCrashes::~TellsCrashes() { restore(); }

}  // namespace ferry::verify
