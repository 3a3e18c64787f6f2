#include "cli/sweep/runner.h"

#include <filesystem>
#include <string>
#include <utility>

#include "cli/sweep/children.h"
#include "cli/sweep/outcome.h"

namespace ferry::cli {
namespace {

constexpr std::chrono::milliseconds kPause(50);  // how soon a stop is noticed

// The program that runs: its own file, even where another was built over it.
std::vector<std::string> command_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  return arguments;
}

}  // namespace

void run_items(const Items& items, const std::vector<std::size_t>& to_do, ResultsFile& results,
               const RunOptions& options) {
  Children children;
  std::size_t next = 0;
  for (std::size_t done = 0; done < to_do.size() && !options.stop();) {
    for (; next < to_do.size() && children.running() < options.jobs; ++next) {
      children.start(to_do[next], command_of(items.arguments(to_do[next])), options.limit);
    }
    for (const ChildEnd& end : children.wait(kPause)) {
      results.add(end.number, outcome_of(end));
      ++done;
    }
    options.progress(done);
  }
}

}  // namespace ferry::cli
