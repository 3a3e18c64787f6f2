// The Pareto table of a sweep. A way is one combination of card, budget and policy that fits. For
// each program the table has the ways that no other way beats in time, in memory and, if the card
// files have a price per hour, in the cost of a step.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ferry::cli {

struct Way {
  std::string hardware, budget, policy;
  long long bytes = 0;  // reserved
  long long step_ns = 0;
  long long cost = 0;  // price per hour, in thousandths; 0: not known
};

struct Front {
  std::string name;  // the program, its optimizer and micro-batches
  std::vector<Way> ways;
  std::vector<Way> beaten;  // the other ways that fit

  std::size_t fit() const { return ways.size() + beaten.size(); }
  std::vector<Way> by_time() const;  // `ways`, fastest first
};

class Fronts {
 public:
  // Adds one line of the results. The caller adds the lines in the order of the sweep's items.
  void add(const nlohmann::ordered_json& line);
  std::string table() const;
  const std::vector<Front>& all() const { return fronts_; }

 private:
  static bool is_no_worse(const Way& a, const Way& b);

  std::vector<Front> fronts_;  // in the order of their first line
};

}  // namespace ferry::cli
