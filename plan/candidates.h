// The fixed lists of candidate plans. They depend on the program, not on the budget, so one list
// serves every budget. A list tries growing parts of the saved tensors with several windows (one
// window in a large program), growing numbers of recomputed segments, or both. Nothing is simulated
// here, and a candidate need not fit.
//
// recompute_and_offload_candidates and mixed_candidates need a program with segments. Which policy
// has which list is in policies.h; the candidates of the search over spans are made in
// span_search.h.
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

// A set of spans of the whole program, which then has no segments. `survey` lists the saved tensors
// that hooks around the spans see.
struct Spanned {
  Survey survey;
  std::vector<PlanSpan> spans;
};

// One possible plan for a step.
struct Candidate {
  std::optional<CoreOptions> options;  // no value: nothing is offloaded
  Mix mix;
  bool trl = false;  // runs TRL's scheduler or a variant, not the core (sim/field/stash.h)
  // The spans whose saved tensors `mix` describes; null: `mix` describes the program's segments.
  std::shared_ptr<const Spanned> spanned = nullptr;
};

// Makes a candidate of a mix: settles the mix, and leaves out the offloader if nothing moves.
Candidate settled(CoreOptions options, Mix mix, const Survey& survey);

// Offloads everything, with TRL's scheduler or the variant of it that the problem names (trials.h).
Candidate offload_all(const Survey& survey);
// Offloads everything, with the core and its defaults.
Candidate offload(const Survey& survey);
// Offloads nothing, then growing shares of the first saved tensors, with each window.
std::vector<Candidate> offload_candidates(const Survey& survey);

Candidate recompute_all(const Survey& survey);
// Recomputes all segments, and offloads everything else with the same scheduler.
Candidate recompute_and_offload_all(const Survey& survey);
// Recomputes from none to all segments, evenly spread. With many segments it skips some counts.
std::vector<Candidate> recompute_candidates(const Survey& survey);
// Recomputes all segments and offloads growing shares of their inputs, the first inputs first, with
// each window.
std::vector<Candidate> recompute_and_offload_candidates(const Survey& survey);
// Includes all lists above, so no other policy of these lists has a faster row that fits.
std::vector<Candidate> mixed_candidates(const Survey& survey);

}  // namespace ferry::plan
