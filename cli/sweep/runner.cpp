#include "cli/sweep/runner.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/sweep/children.h"
#include "cli/sweep/hand_out.h"
#include "cli/sweep/outcome.h"

namespace ferry::cli {

std::vector<std::string> command_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  return arguments;
}

void run_items(const Items& items, const std::vector<std::size_t>& to_do, ResultsFile& results,
               const RunOptions& options, Ranks* ranks) {
  // The delay until a stop signal or a message of another rank is noticed.
  const std::chrono::milliseconds pause(ranks ? 1 : 50);
  Children children;
  HandOut others(ranks);
  std::size_t next = 0, done = 0;
  const auto add = [&](std::uint64_t item, std::string_view outcome) {
    results.add(item, outcome);
    ++done;
  };
  while (done < to_do.size() && !options.stop()) {
    for (; next < to_do.size(); ++next) {
      const int other = others.rank_with_room();
      if (children.running() < options.jobs) {
        children.start(to_do[next], command_of(items.arguments(to_do[next])), options.limit);
      } else if (other != 0) {
        others.give(other, to_do[next], items.arguments(to_do[next]));
      } else {
        break;
      }
    }
    for (const ChildEnd& end : children.wait(pause)) add(end.number, outcome_of(end));
    others.take(add);
    options.progress(done);
  }
}

}  // namespace ferry::cli
