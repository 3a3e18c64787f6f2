// The Pareto table of a sweep: for each program, of all the ways to run its step that fit, those
// that no other way beats in time, in memory, and in the cost of a step where the cards' files tell
// what an hour costs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ferry::cli {

struct Way {
  std::string hardware, budget, policy;
  long long bytes = 0;  // reserved
  long long step_ns = 0;
  long long cost = 0;  // of an hour, in thousandths; 0: not known
};

struct Front {
  std::string name;  // the program, and how its step is made
  std::vector<Way> ways;
  std::vector<Way> beaten;  // they fit as well

  std::size_t fit() const { return ways.size() + beaten.size(); }
  std::vector<Way> by_time() const;  // its ways
};

class Fronts {
 public:
  // A line of the results; in the order of the sweep.
  void add(const nlohmann::ordered_json& line);
  std::string table() const;
  const std::vector<Front>& all() const { return fronts_; }

 private:
  static bool is_no_worse(const Way& a, const Way& b);

  std::vector<Front> fronts_;  // in the order in which they came
};

}  // namespace ferry::cli
