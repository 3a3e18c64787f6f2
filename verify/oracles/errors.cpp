#include "verify/oracles/errors.h"

#include <algorithm>
#include <cstddef>

#include "verify/oracles/hazards.h"
#include "verify/oracles/leaks.h"

namespace ferry::verify {
namespace {

bool told(const sim::Simulation& run) {
  return std::any_of(run.errors.begin(), run.errors.end(),
                     [](const sim::ProgramError& error) { return is_told_failure(error.message); });
}

}  // namespace

std::string first_difference(const std::vector<std::string>& keep,
                             const std::vector<std::string>& run) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i >= keep.size() || keep[i] != run[i]) return run[i];
  }
  return keep.size() > run.size() ? "an error was lost: " + keep[run.size()] : "";
}

bool is_told_failure(const std::string& message) {
  return message.find("injected fault") != std::string::npos ||
         message.find("out of memory") != std::string::npos ||
         message.find("out of pinned host memory") != std::string::npos;
}

std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run) {
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (const auto leak = judge_leaks(run.leftovers)) return leak;
  if (run.errors.size() > keep.errors.size() + 3) {
    return Verdict{Oracle::kError,
                   "one failure made further calls fail: " + run.errors.back().message};
  }
  if (told(run)) return std::nullopt;
  const std::string error = first_difference(sim::messages(keep), sim::messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, "the cause of a failure was lost: " + error};
  if (keep.gradients != run.gradients)
    return Verdict{Oracle::kValue, "a failure changed a gradient"};
  return std::nullopt;
}

}  // namespace ferry::verify
