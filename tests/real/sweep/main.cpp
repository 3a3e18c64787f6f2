// Every overload of LibTorch's that can be differentiated, under Ferry and without: the same bits?
//
//     ferry_sweep CALLS LIST [--all] [NAME...]
//
// CALLS is what record.py wrote, LIST the overloads that are known not to be the same (listed.h).
// Without --all the calls are tried as they were recorded, in two ways. Exit codes: 0 all is as the
// list says, 1 it is not, 2 usage.
#include <torch/torch.h>

#include <exception>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/real/sweep/drawn.h"
#include "tests/real/sweep/listed.h"
#include "tests/real/sweep/overloads.h"
#include "tests/real/sweep/sweep.h"

namespace ferry::sweep {
namespace {

struct Options {
  std::string calls, list;
  bool all = false;
  std::set<std::string> names;  // none: every overload
};

using Results = std::map<std::string, Tried>;

Results try_all(const Options& options, const Calls& calls, const Overloads& found) {
  const std::vector<Variation> forms = variations(options.all);
  const std::vector<NamedWay> compared = ways(options.all);
  Results results;
  for (const auto& [name, op] : found.tried) {
    if (!options.names.empty() && !options.names.contains(name)) continue;
    Tried& tried = results[name];
    const auto recorded = calls.find(name);
    if (recorded != calls.end()) tried = try_overload(recorded->second, forms, compared);
    const Verdict enough = options.all ? Verdict::kEqual : Verdict::kNotDifferentiable;
    if (tried.verdict < enough) {
      const Tried drawn = try_overload(usable(draw(op, calls)), forms, compared);
      if (drawn.verdict > tried.verdict) tried = drawn;
    }
    if (tried.verdict != Verdict::kNotCalled) continue;
    tried.why = why_not_called(op);
    tried.by_rule = !tried.why.empty();
  }
  return results;
}

void print(const Results& results, const Overloads& found) {
  std::map<Verdict, int> by_verdict;
  std::map<std::string, int> by_rule;
  std::int64_t steps = 0;
  for (const auto& [name, tried] : results) {
    ++by_verdict[tried.verdict];
    steps += tried.steps;
    if (tried.by_rule) ++by_rule[tried.why];
  }
  std::cout << results.size() << " overloads with tensors in and out (and " << found.with_out
            << " that write `out`, which autograd refuses)\n";
  for (const auto& [verdict, count] : by_verdict)
    std::cout << "  " << count << " " << text(verdict) << "\n";
  for (const auto& [why, count] : by_rule)
    std::cout << "    " << count << " not called: " << why << "\n";
  std::cout << steps << " steps compared with plain ones\n";
}

int run(const Options& options) {
  at::set_num_threads(1);
  const List list = read_list(options.list);
  const Calls calls = read_calls(options.calls);
  const Overloads found = overloads();
  const Results results = try_all(options, calls, found);
  print(results, found);
  const auto wrong = faults(list, results, options.all && options.names.empty());
  for (const std::string& fault : wrong) std::cout << fault << "\n";
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace ferry::sweep

int main(int argc, char** argv) {
  ferry::sweep::Options options;
  std::vector<std::string> files;
  for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
    if (argument == "--all") {
      options.all = true;
    } else if (files.size() < 2) {
      files.push_back(argument);
    } else {
      options.names.insert(argument);
    }
  }
  if (files.size() < 2) {
    std::cerr << "ferry_sweep: expected CALLS LIST [--all] [NAME...]\n";
    return 2;
  }
  options.calls = files[0];
  options.list = files[1];
  try {
    return ferry::sweep::run(options);
  } catch (const std::exception& error) {
    std::cerr << "ferry_sweep: " << error.what() << "\n";
    return 2;
  }
}
