// A row's own run as the page has it: numbers in columns, each the difference from the one before,
// so that they stay exact and short.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/page/places.h"
#include "plan/planner.h"
#include "sim/gpu/run_record.h"

namespace ferry::cli {

// Texts of a page, each once; others refer to them by number.
class Texts {
 public:
  std::size_t of(const std::string& text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> numbers_;
};

// A step is drawn in at most so many slices (curves.h).
inline constexpr std::size_t kSlices = 1000;

// `memory`: the curve; `peak`: what it is made of; `lanes`: what each did, and why it did nothing.
// Texts in it are numbers of `texts`.
nlohmann::ordered_json run_data(const plan::PolicyRow& row, const sim::RunRecord& record,
                                const Places& places, Texts& texts);

}  // namespace ferry::cli
