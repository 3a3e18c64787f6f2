// Hunts the mutant that FERRY_MUTANT names: the campaign's programs, until an oracle objects.
//
//     ferry_mutation_hunt SEED FIRST END
//
// Prints "PROGRAM ORACLE: words" and exits with 1, or "END" and 0. A program that crashes or has no
// end is told on stderr, as "crash" or "hang" in program N: exit code 3.
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "sim/verify/campaign/at_work.h"
#include "sim/verify/campaign/campaign.h"

namespace {

using ferry::verify::AtWork;
using ferry::verify::CampaignOptions;
using ferry::verify::Coverage;
using ferry::verify::DrawnRun;

// A program takes a millisecond. The real time is for what waits for ever.
constexpr int kCpuSeconds = 4;
constexpr int kRealSeconds = 30;

// As a signal's handler may: no allocation.
void tell(int signal) {
  const bool hangs = signal == SIGALRM || signal == SIGVTALRM;
  std::array<char, 64> text{};
  std::size_t at = text.size();
  std::uint64_t number = ferry::verify::program_at_work();
  text[--at] = '\n';
  do {
    text[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  const std::string_view what = hangs ? "hang in program " : "crash in program ";
  for (std::size_t i = what.size(); i > 0; --i) text[--at] = what[i - 1];
  const ssize_t written = ::write(STDERR_FILENO, text.data() + at, text.size() - at);
  ::_exit(written > 0 ? 3 : 4);
}

void set_time() {
  const itimerval cpu{.it_interval = {}, .it_value = {.tv_sec = kCpuSeconds, .tv_usec = 0}};
  const itimerval real{.it_interval = {}, .it_value = {.tv_sec = kRealSeconds, .tv_usec = 0}};
  ::setitimer(ITIMER_VIRTUAL, &cpu, nullptr);
  ::setitimer(ITIMER_REAL, &real, nullptr);
}

int hunt(std::uint64_t seed, std::uint64_t first, std::uint64_t end) {
  CampaignOptions options;
  options.seed = seed;
  Coverage coverage;
  for (std::uint64_t number = first; number < end; ++number) {
    const AtWork work(number);
    set_time();
    const DrawnRun run = ferry::verify::try_program(options, number, coverage);
    if (!run.verdict) continue;
    std::cout << number << ' ' << to_string(*run.verdict) << '\n';
    return 1;
  }
  std::cout << end << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "expected SEED FIRST END\n";
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM, SIGVTALRM}) {
    std::signal(signal, tell);
  }
  return hunt(std::stoull(argv[1]), std::stoull(argv[2]), std::stoull(argv[3]));
}
