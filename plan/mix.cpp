#include "plan/mix.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "formats/plan_options.h"

namespace ferry::plan {
namespace {

// A saved tensor of the step with the mix. `frame` is the recomputed segment that saves it; no
// value: the forward saves it.
struct Packed {
  const PackedTensor& tensor;
  PlanChoice choice = PlanChoice::kKeep;
  std::optional<std::size_t> frame;
};

// Visits the saved tensors in order, with the inputs of recomputed segments.
template <class Visit>
void for_each_pack(const Survey& survey, const Mix& mix, Visit visit) {
  std::size_t segment = 0;
  for (std::size_t pack = 0; pack <= survey.packs.size(); ++pack) {
    while (segment < survey.segments.size() && survey.segments[segment].end <= pack &&
           survey.segments[segment].first < pack) {
      ++segment;
    }
    // A segment that saves nothing has the same first tensor as the next segment.
    while (segment < survey.segments.size() && survey.segments[segment].first == pack) {
      const SurveyedSegment& here = survey.segments[segment];
      for (std::size_t i = 0; mix.recompute[segment] && i < here.inputs.size(); ++i) {
        const bool moves = mix.input_moves[segment][i];
        visit(Packed{here.inputs[i], moves ? PlanChoice::kOffload : PlanChoice::kKeep, {}});
      }
      if (here.end > pack) break;
      ++segment;
    }
    if (pack == survey.packs.size()) break;
    const bool inside = segment < survey.segments.size() &&
                        survey.segments[segment].first <= pack && mix.recompute[segment];
    visit(Packed{survey.packs[pack], mix.packs[pack],
                 inside ? std::optional(segment) : std::nullopt});
  }
}

bool stays(const PackedTensor& tensor, std::int64_t min_bytes) {
  return tensor.exempt || tensor.storage_bytes < min_bytes;
}

}  // namespace

Mix keep_all(const Survey& survey) {
  Mix mix;
  mix.packs.assign(survey.packs.size(), PlanChoice::kKeep);
  mix.recompute.assign(survey.segments.size(), false);
  for (const SurveyedSegment& segment : survey.segments) {
    mix.input_moves.emplace_back(segment.inputs.size(), false);
  }
  return mix;
}

void settle(Mix& mix, const Survey& survey, std::int64_t min_bytes) {
  std::vector<bool> moved;  // by group
  for_each_pack(survey, mix, [&](const Packed& packed) {
    if (packed.choice != PlanChoice::kOffload || stays(packed.tensor, min_bytes)) return;
    if (moved.size() <= packed.tensor.group) moved.resize(packed.tensor.group + 1, false);
    moved[packed.tensor.group] = true;
  });
  const auto moves = [&](const PackedTensor& tensor) {
    return tensor.group < moved.size() && moved[tensor.group];
  };
  const auto settled = [&](const PackedTensor& tensor, PlanChoice choice) {
    if (choice == PlanChoice::kRecompute) return choice;
    return moves(tensor) ? PlanChoice::kOffload : PlanChoice::kKeep;
  };
  for (std::size_t i = 0; i < mix.packs.size(); ++i) {
    mix.packs[i] = settled(survey.packs[i], mix.packs[i]);
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    for (std::size_t i = 0; i < survey.segments[s].inputs.size(); ++i) {
      mix.input_moves[s][i] = moves(survey.segments[s].inputs[i]);
    }
  }
}

std::set<std::uint64_t> moved_groups(const Mix& mix, const Survey& survey) {
  std::set<std::uint64_t> groups;
  for (std::size_t p = 0; p < survey.packs.size(); ++p) {
    if (mix.packs[p] == PlanChoice::kOffload) groups.insert(survey.packs[p].group);
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    for (std::size_t i = 0; mix.recompute[s] && i < mix.input_moves[s].size(); ++i) {
      if (mix.input_moves[s][i]) groups.insert(survey.segments[s].inputs[i].group);
    }
  }
  return groups;
}

std::vector<bool> offload_choices(const Survey& survey, const Mix& mix) {
  std::vector<bool> choices;
  for_each_pack(survey, mix, [&](const Packed& packed) {
    const bool moves = packed.choice == PlanChoice::kOffload;
    if (!packed.frame || moves) choices.push_back(moves);
  });
  choices.push_back(false);  // never empty: an empty list means all
  return choices;
}

std::shared_ptr<const SegmentPlan> segment_plan(const Survey& survey, const Mix& mix) {
  const auto plan = std::make_shared<SegmentPlan>(SegmentPlan::closed());
  for (const bool recompute : mix.recompute) {
    plan->segments.push_back(SegmentPlan::closed(recompute));
  }
  for_each_pack(survey, mix, [&](const Packed& packed) {
    if (!packed.frame) return;
    SegmentPlan& segment = plan->segments[*packed.frame];
    segment.choices.push_back(saved_choice(packed.choice));
    segment.packs = segment.choices.size();
  });
  return plan;
}

std::vector<PlanSegment> plan_segments(const Mix& mix, const std::vector<std::string>& names) {
  std::vector<PlanSegment> segments;
  for (std::size_t s = 0; s < names.size(); ++s) {
    segments.push_back({names[s], mix.recompute[s]});
  }
  return segments;
}

std::vector<PlanEntry> plan_entries(const Survey& survey, const Mix& mix) {
  std::vector<PlanEntry> entries;
  std::map<std::optional<std::size_t>, std::uint64_t> packs;  // saves so far, by frame
  for_each_pack(survey, mix, [&](const Packed& packed) {
    Layout layout = packed.tensor.layout;
    layout.offset = 0;
    PlanEntry entry{packs[packed.frame]++, packed.tensor.node, layout,
                    packed.tensor.group,   packed.choice,      {}};
    if (packed.frame) entry.segment = *packed.frame;
    entries.push_back(std::move(entry));
  });
  return entries;
}

std::string plan_mismatch(const Survey& survey, const Plan& plan) {
  const auto differ = [](const char* what, std::size_t planned, std::size_t found) {
    return "the plan has " + std::to_string(planned) + " " + what + ", the program " +
           std::to_string(found);
  };
  Mix mix = keep_all(survey);
  if (!plan.segments.empty() && plan.segments.size() != survey.segments.size()) {
    return differ("segments", plan.segments.size(), survey.segments.size());
  }
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    mix.recompute[s] = plan.segments[s].recompute;
  }
  const std::vector<PlanEntry> found = plan_entries(survey, mix);
  for (std::size_t i = 0; i < std::min(found.size(), plan.entries.size()); ++i) {
    const PlanEntry& planned = plan.entries[i];
    const PlanEntry& entry = found[i];
    if (planned.pack == entry.pack && planned.segment == entry.segment && planned.op == entry.op &&
        planned.layout == entry.layout) {
      continue;
    }
    return "entry " + std::to_string(i) + " of the plan is saved tensor " +
           std::to_string(planned.pack) + " of " + planned.op + ", in the program it is saved " +
           "tensor " + std::to_string(entry.pack) + " of " + entry.op +
           ", or of another type or segment";
  }
  if (found.size() == plan.entries.size()) return "";
  return differ("saved tensors", plan.entries.size(), found.size());
}

}  // namespace ferry::plan
