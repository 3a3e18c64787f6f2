// A mix: the choice (keep, offload, recompute) for every saved tensor, every segment and every
// input of a segment. Each candidate of the planner has one (candidates.h). This file translates a
// mix for the core and for the plan file, and compares a plan file with a program.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "plan/survey.h"
#include "shared/seam/checkpoint_options.h"

namespace ferry::plan {

// Indexed like a survey. A saved tensor may be kRecompute only inside a recomputed segment.
struct Mix {
  std::vector<PlanChoice> packs;               // by saved tensor
  std::vector<bool> recompute;                 // by segment
  std::vector<std::vector<bool>> input_moves;  // by segment and input: true to offload
};

// Keeps everything.
Mix keep_all(const Survey& survey);

// Changes a mix to what the core can do. Storages move as a whole: if one saved tensor of a storage
// is offloaded, its kept ones are too. Tensors that the offloader leaves alone (parameters,
// storages below `min_bytes`) are kept.
void settle(Mix& mix, const Survey& survey, std::int64_t min_bytes);

// Returns the groups, that is storages, that are offloaded.
std::set<std::uint64_t> moved_groups(const Mix& mix, const Survey& survey);

// Returns for each tensor that the offloader sees, in its order, if it is offloaded. Of a
// recomputed segment the offloader sees the inputs, and the saved tensors that the mix offloads.
std::vector<bool> offload_choices(const Survey& survey, const Mix& mix);

std::shared_ptr<const SegmentPlan> segment_plan(const Survey& survey, const Mix& mix);

// `names` are the names of the segments, in order.
std::vector<PlanSegment> plan_segments(const Mix& mix, const std::vector<std::string>& names);
std::vector<PlanEntry> plan_entries(const Survey& survey, const Mix& mix);

// Returns the first difference between the plan and the program of the survey; empty: they match.
std::string plan_mismatch(const Survey& survey, const Plan& plan);

}  // namespace ferry::plan
