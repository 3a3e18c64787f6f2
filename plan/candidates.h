// The candidates of each search: fixed lists that do not depend on the budget.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "shared/seam/options.h"

namespace ferry::plan {

// The planned program with other segments: calls of these modules, in order. Or without segments
// and with spans of operators; then the survey is of what hooks around the spans see.
struct Outlined {
  std::vector<std::string> modules;
  Survey survey;
  std::vector<PlanSpan> spans = {};
};

// A way to run the step.
struct Candidate {
  std::optional<CoreOptions> options;  // none: nothing is offloaded
  Mix mix;
  bool trl = false;  // runs TRL's scheduler in the core's place (sim/field/stash.h)
  // The segments that the mix is of; null: the planner's.
  std::shared_ptr<const Outlined> outlined = nullptr;
};

// The mix as the core runs it, without an offloader if nothing moves.
Candidate settled(CoreOptions options, Mix mix, const Survey& survey);

// Offloads everything, with TRL's scheduler.
Candidate offload_all(const Survey& survey);
// Offloads everything, with the core and its defaults.
Candidate offload(const Survey& survey);
// Offloads nothing, then growing shares of the first saves, with each window.
std::vector<Candidate> offload_candidates(const Survey& survey);

Candidate recompute_all(const Survey& survey);
// Recomputes all segments, and offloads all else with TRL's scheduler.
Candidate recompute_and_offload_all(const Survey& survey);
// Recomputes from none to all segments, evenly spread; of very many not every number of them.
std::vector<Candidate> recompute_candidates(const Survey& survey);
// Recomputes all segments and offloads shares of their inputs, first ones first, with each window.
std::vector<Candidate> recompute_and_offload_candidates(const Survey& survey);
// Includes all of the above, so that no other row that fits is faster.
std::vector<Candidate> mixed_candidates(const Survey& survey);

}  // namespace ferry::plan
