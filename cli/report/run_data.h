// The data of one row's run for the page. Numbers are stored as columns of differences, each from
// the number before, so that they stay exact and short.
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

// The texts of a page, each stored once. Other data refers to them by number.
class Texts {
 public:
  std::size_t of(const std::string& text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> numbers_;
};

// The most slices that a step is drawn in (cli/page/curves.h).
inline constexpr std::size_t kSlices = 1000;

// Returns an object: `memory` is the curve, `peak` what the peak consists of, and `lanes` what each
// engine and the host did, and why they were idle. Texts are stored as numbers of `texts`.
nlohmann::ordered_json run_data(const plan::PolicyRow& row, const sim::RunRecord& record,
                                const Places& places, Texts& texts);

}  // namespace ferry::cli
