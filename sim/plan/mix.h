// A mix: what becomes of every saved tensor and of every segment of a program, and how to tell the
// core and the plan file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/plan/survey.h"

namespace ferry::plan {

// Of a survey. Recompute is a choice inside recomputed segments alone.
struct Mix {
  std::vector<PlanChoice> packs;               // by pack
  std::vector<bool> recompute;                 // by segment
  std::vector<std::vector<bool>> input_moves;  // by segment and input: offloaded
};

// Keeps everything.
Mix keep_all(const Survey& survey);

// Storages move whole: where one saved tensor of a storage is offloaded, those that are kept are
// offloaded, too. What the offloader leaves alone (parameters, small storages) is kept.
void settle(Mix& mix, const Survey& survey, std::int64_t bytes_min);

// By ordinal of the pack as the offloader counts them: what checkpoints take it does not see, but
// their inputs.
std::vector<bool> offload_choices(const Survey& survey, const Mix& mix);

std::shared_ptr<const SegmentPlan> segment_plan(const Survey& survey, const Mix& mix);

// `names` of the segments, in order.
std::vector<PlanSegment> plan_segments(const Mix& mix, const std::vector<std::string>& names);
std::vector<PlanEntry> plan_entries(const Survey& survey, const Mix& mix);

// Where the plan is one for another program: what it has that this one has not. Empty: it fits.
std::string plan_mismatch(const Survey& survey, const Plan& plan);

}  // namespace ferry::plan
