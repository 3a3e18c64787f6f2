#include "verify/hunted/features.h"

#include <algorithm>

#include "formats/error.h"
#include "formats/nearest.h"
#include "formats/program_file.h"
#include "verify/hunted/limits.h"
#include "verify/programs/random_program.h"

namespace ferry::verify {
namespace {

void without_raises(Recipe& recipe) {
  if (recipe.failure != StepFailure::kSavedWritten) without_failures(recipe);
}
void replace(Recipe& recipe, Extra extra, Extra instead) {
  for (Layer& layer : recipe.layers) {
    if (layer.extra == extra) layer.extra = instead;
  }
}
void without_retain_graph(Recipe& recipe) {
  recipe.retain = false;
  replace(recipe, Extra::kInnerRetained, Extra::kInnerBackward);
}
void without_higher_derivatives(Recipe& recipe) {
  recipe.derivatives = 1;
  replace(recipe, Extra::kInnerCreates, Extra::kInnerBackward);
}
void without_nested_backward(Recipe& recipe) {
  without(recipe, {LayerKind::kNested});
  for (const Extra extra : {Extra::kInnerBackward, Extra::kInnerRetained, Extra::kInnerCreates}) {
    replace(recipe, extra, Extra::kNothing);
  }
}
void without_unused(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kWrittenBetween});
}
void without_escapes(Recipe& recipe) { without(recipe, {LayerKind::kEscape}); }
void without_views(Recipe& recipe) {
  without(recipe, {LayerKind::kSavesView, LayerKind::kSmallView, LayerKind::kEscape});
}
void without_in_place(Recipe& recipe) {
  without(recipe, {LayerKind::kInPlace, LayerKind::kWrittenBetween});
}
void without_excluded(Recipe& recipe) { without(recipe, {LayerKind::kExcluded}); }
void without_moves(Recipe& recipe) { recipe.move = false; }
void without_checkpoints(Recipe& recipe) { recipe.segments = false; }
void without_reentrant(Recipe& recipe) { without_segment_bits(recipe, kReentrantBit); }

template <void (*kChange)(Recipe&)>
void of_recipe(Trial& trial) {
  kChange(trial.recipe);
}
void without_plan(Trial& trial) { trial.plan = nullptr; }

constexpr std::array<FeatureInfo, kFeatures> kInfo = {{
    {"late-writes", "a saved tensor is written in place before its backward, an error",
     of_recipe<without_late_writes>},
    {"raises", "a forward or a backward raises; later steps continue", of_recipe<without_raises>},
    {"side-streams", "layers and checkpoints that compute on their own stream",
     of_recipe<without_side_streams>},
    {"forwards-ahead", "several forwards before the first backward", of_recipe<in_turn>},
    {"retain-graph", "two backwards of one graph: its saved tensors are unpacked twice",
     of_recipe<without_retain_graph>},
    {"higher-derivatives", "backwards that save tensors, up to the third derivative",
     of_recipe<without_higher_derivatives>},
    {"nested-backward", "a backward within a backward, or within a forward",
     of_recipe<without_nested_backward>},
    {"unused-saves", "saved tensors that no backward unpacks", of_recipe<without_unused>},
    {"escapes", "a view of a saved tensor outlives its node, as a gradient",
     of_recipe<without_escapes>},
    {"views", "saved views of larger storages", of_recipe<without_views>},
    {"in-place", "writes in place", of_recipe<without_in_place>},
    {"no-hooks", "layers that hooks do not see", of_recipe<without_excluded>},
    {"moved-parameters", "a parameter moves to another storage", of_recipe<without_moves>},
    {"checkpoints", "checkpoints, also nested ones", of_recipe<without_checkpoints>},
    {"reentrant", "reentrant checkpoints", of_recipe<without_reentrant>},
    {"plans", "checkpoints with a plan: keep, pass on or recompute each saved tensor",
     without_plan},
}};

}  // namespace

const FeatureInfo& info(Feature feature) { return kInfo[static_cast<std::size_t>(feature)]; }

std::array<Feature, kFeatures> all_features() {
  std::array<Feature, kFeatures> all{};
  for (std::size_t i = 0; i < kFeatures; ++i) all[i] = static_cast<Feature>(i);
  return all;
}

Feature feature_of(std::string_view word) {
  std::vector<std::string> words;
  words.reserve(kInfo.size());
  for (const FeatureInfo& each : kInfo) words.emplace_back(each.word);
  if (const auto found = std::find(words.begin(), words.end(), word); found != words.end()) {
    return static_cast<Feature>(found - words.begin());
  }
  throw InputError("--without", 0,
                   "there is no '" + std::string(word) +
                       "', expected a feature that --features lists" +
                       did_you_mean(std::string(word), words));
}

std::vector<Feature> features_of(const Trial& trial) {
  std::vector<Feature> found;
  const std::string as_it_is = to_text(make_program(trial.recipe));
  for (const Feature feature : all_features()) {
    Trial changed = trial;
    info(feature).leave_out(changed);
    const bool other_plan = has_plan(changed) != has_plan(trial) && changed.recipe.segments;
    if (other_plan || to_text(make_program(changed.recipe)) != as_it_is) found.push_back(feature);
  }
  return found;
}

}  // namespace ferry::verify
