#include "scenarios/scenario.h"

#include <algorithm>
#include <set>

#include "formats/limits.h"
#include "formats/text_file.h"
#include "scenarios/paths.h"
#include "scenarios/toml_fields.h"
#include "scenarios/units.h"

namespace ferry {
Scenario parse_scenario(std::string_view text, const std::string& path) {
  TomlFields file(text, path);
  Scenario scenario;
  scenario.name = std::filesystem::path(path).stem().string();
  scenario.description = file.text_or("description", "");
  scenario.program = beside(file.text("program"), path);
  scenario.hardware = beside(file.text("hardware"), path);
  if (file.has("budget")) {
    scenario.budget_bytes = file.quantity("budget", parse_bytes);
    if (*scenario.budget_bytes == 0) file.expected("budget", "more than 0");
    if (*scenario.budget_bytes > limits::kBytes) {
      file.expected("budget", "at most " + format_bytes(limits::kBytes));
    }
  }
  std::set<std::string> distinct;
  for (const std::string& name : file.texts("policies")) {
    if (!distinct.insert(name).second) file.expected("policies", "each one once");
    const std::optional<Policy> policy = find_policy(name);
    if (!policy) file.expected("policies", list_of_policies());
    scenario.policies.push_back(*policy);
  }
  scenario.optimizer = file.text_or("optimizer", scenario.optimizer);
  if (std::find(kOptimizers.begin(), kOptimizers.end(), scenario.optimizer) == kOptimizers.end()) {
    file.expected("optimizer", "none, sgd, momentum, adam or adamw");
  }
  scenario.microbatches = file.integer_or("microbatches", 1, 1, 4096);
  file.finish();
  return scenario;
}

Scenario read_scenario(const std::filesystem::path& path) {
  return parse_scenario(read_file(path), path.string());
}

Scenario find_scenario(const std::string& name_or_path) {
  return read_scenario(find_shipped("scenario", "plans", ".toml", name_or_path));
}

}  // namespace ferry
