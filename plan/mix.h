// A mix: the choice for every saved tensor and every segment of a program, and its translation for
// the core and the plan file.
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

// Indexed like a survey. Recompute is a choice inside recomputed segments only.
struct Mix {
  std::vector<PlanChoice> packs;               // by pack
  std::vector<bool> recompute;                 // by segment
  std::vector<std::vector<bool>> input_moves;  // by segment and input: true to offload
};

// Keeps everything.
Mix keep_all(const Survey& survey);

// Storages move whole: if one saved tensor of a storage is offloaded, its kept ones are, too.
// Tensors that the offloader leaves alone (parameters, small storages) are kept.
void settle(Mix& mix, const Survey& survey, std::int64_t min_bytes);

// The groups of packs and of segments' inputs that are offloaded: a group is a storage.
std::set<std::uint64_t> moved_groups(const Mix& mix, const Survey& survey);

// By ordinal of the pack as the offloader counts: of the packs that checkpoints take, it sees the
// segments' inputs only.
std::vector<bool> offload_choices(const Survey& survey, const Mix& mix);

std::shared_ptr<const SegmentPlan> segment_plan(const Survey& survey, const Mix& mix);

// Takes the segments' `names`, in order.
std::vector<PlanSegment> plan_segments(const Mix& mix, const std::vector<std::string>& names);
std::vector<PlanEntry> plan_entries(const Survey& survey, const Mix& mix);

// If the plan is for another program: what the plan has and this program lacks. Empty: it fits.
std::string plan_mismatch(const Survey& survey, const Plan& plan);

}  // namespace ferry::plan
