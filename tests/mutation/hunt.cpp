// Hunts the mutant that FERRY_MUTANT names: the campaign's programs, until an oracle objects.
//
//     ferry_mutation_hunt SEED MOST < NUMBERS    of the programs
//
// Prints "PROGRAM ORACLE: words" and exits with 1; or "PROGRAM DIGEST" of its operations for each,
// and exits with 0. A program that crashes or has no end is told on stderr, as "crash" or "hang" in
// program N: exit code 3. Where FERRY_MUTANT is -1, there follow the mutants whose places a program
// comes by, each at its first MOST programs.
//
// A number from kDesigned on is one of the mutants of `ferry verify`, with the first program that
// it was caught on: it must be caught again; one from kList on is their list, which must be as it
// was. Where FERRY_MUTANT is -1, these are told as well.
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tests/mutation/chosen.h"
#include "verify/campaign/at_work.h"
#include "verify/campaign/campaign.h"
#include "verify/campaign/drawn_run.h"
#include "verify/core/cases.h"
#include "verify/core/core_trials.h"
#include "verify/mutants/mutants.h"
#include "verify/oracles/determinism.h"

namespace {

using ferry::verify::AtWork;
using ferry::verify::CampaignOptions;
using ferry::verify::core_trials;
using ferry::verify::Coverage;
using ferry::verify::DrawnRun;
using ferry::verify::Mutant;
using ferry::verify::OpDigest;

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

constexpr std::uint64_t kDesigned = std::uint64_t{1} << 32;
constexpr std::uint64_t kProgramsOfDesigned = 60'000;
constexpr std::uint64_t kList = std::uint64_t{1} << 62;

// Names the list of the designed mutants, which is a number from kList on.
std::uint64_t list() {
  std::string names;
  for (const Mutant& mutant : ferry::verify::all_mutants()) names += mutant.name + "\n";
  return kList | std::hash<std::string>()(names) >> 2;
}

// Whether the designed mutant of that number is caught on its program.
bool is_caught(std::uint64_t seed, std::uint64_t number) {
  if (number >= kList) return number == list();
  static const std::vector<Mutant> mutants = ferry::verify::all_mutants();
  const std::uint64_t mutant = number / kDesigned - 1;
  return mutant < mutants.size() &&
         ferry::verify::try_drawn(core_trials(), mutants[mutant], seed, number % kDesigned).verdict;
}

// The designed mutants that drawn programs catch, as such numbers.
template <class Found>
void each_caught(std::uint64_t seed, const Found& found) {
  const std::vector<Mutant> mutants = ferry::verify::all_mutants();
  ferry::mutation::reached().take();
  found(list());
  for (std::uint64_t mutant = 0; mutant < mutants.size(); ++mutant) {
    if (ferry::verify::own_case(mutants[mutant])) continue;
    if (!ferry::verify::unit_test(mutants[mutant]).empty()) continue;
    for (std::uint64_t program = 0; program < kProgramsOfDesigned; ++program) {
      const std::uint64_t number = (mutant + 1) * kDesigned + program;
      ferry::mutation::reached().take();
      set_time();
      if (!is_caught(seed, number)) continue;
      found(number);
      break;
    }
  }
}

int hunt(std::uint64_t seed, int most) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = seed;
  Coverage coverage;
  std::vector<int> programs_of(ferry::mutation::kMutantsMax);
  std::ostringstream told;
  const auto tell_program = [&](std::uint64_t number, std::uint64_t digest, int at_most) {
    told << number << ' ' << digest;
    if (ferry::mutation::chosen < 0) {
      for (const int mutant : ferry::mutation::reached().take()) {
        if (++programs_of[static_cast<std::size_t>(mutant)] <= at_most) told << ' ' << mutant;
      }
    }
    told << '\n';
  };
  for (std::uint64_t number = 0; std::cin >> number;) {
    const AtWork work(number);
    set_time();
    if (number >= kDesigned) {
      if (!is_caught(seed, number)) {
        std::cout << number << " matrix: a designed mutant is not caught, or is another\n";
        return 1;
      }
      tell_program(number, 0, most);
      continue;
    }
    OpDigest digest;
    const DrawnRun run = ferry::verify::try_program(options, number, coverage, &digest);
    if (run.verdict) {
      std::cout << number << ' ' << to_string(*run.verdict) << '\n';
      return 1;
    }
    tell_program(number, digest.value(), most);
  }
  if (ferry::mutation::chosen < 0) {
    each_caught(seed, [&](std::uint64_t number) {
      tell_program(number, 0, std::numeric_limits<int>::max());
    });
  }
  std::cout << told.str();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "expected SEED MOST\n";
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM, SIGVTALRM}) {
    std::signal(signal, tell);
  }
  return hunt(std::stoull(argv[1]), std::stoi(argv[2]));
}
