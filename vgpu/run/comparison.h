// The same script in several settings: a run for each, and a table of what they need and take.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vgpu/run/one_run.h"
#include "vgpu/run/options.h"

namespace ferry::vgpu {

struct Row {
  Setting setting;
  Run run;

  bool out_of_memory() const;
  // It ended otherwise than by its end, or by the end of the card's memory.
  bool failed() const;
};

// One after another. What the scripts print is not shown, but for the end of what one that failed
// printed; races are.
std::vector<Row> compare(const Options& options, const std::filesystem::path& libraries);

// What no row has for itself, or what is the same in all, has no column.
std::string to_table(const std::vector<Row>& rows);
// "rows": of each its setting, its verdict and what was simulated.
nlohmann::ordered_json to_json(const std::vector<Row>& rows);
// kOk if every row is an answer, out of memory or not, and none has a race; kNotJudged if one has
// to be judged and was not.
int exit_code(const std::vector<Row>& rows);
// The last line: "6 of 6 runs were judged in whole: 0 violations".
std::string verdict_of(const std::vector<Row>& rows);

}  // namespace ferry::vgpu
