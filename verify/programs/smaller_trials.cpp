#include "verify/programs/smaller_trials.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::verify {
namespace {

// Adds copies of `value` with one number closer to its smallest value, for each number that `visit`
// visits.
template <class T, class Visit>
void add_smaller(const T& value, Visit visit, std::vector<T>& into) {
  std::size_t fields = 0;
  T probe = value;
  visit(probe, [&fields](auto&, int, int) { ++fields; });
  for (std::size_t chosen = 0; chosen < fields; ++chosen) {
    std::vector<int> tries;
    std::size_t at = 0;
    visit(probe, [&](auto& field, int first, int) {
      if (at++ != chosen) return;
      const int now = static_cast<int>(field);
      if (now > first) tries.push_back(first);
      if (now > first + 1) tries.push_back(now - 1);
    });
    for (const int number : tries) {
      T smaller = value;
      at = 0;
      visit(smaller, [&](auto& field, int, int) {
        if (at++ == chosen) field = static_cast<std::remove_reference_t<decltype(field)>>(number);
      });
      into.push_back(std::move(smaller));
    }
  }
}

std::vector<Layer> smaller_layers(const Layer& layer) {
  std::vector<Layer> smaller;
  const auto visit = [](auto& each, auto&& visitor) { visit_layer(each, visitor); };
  add_smaller(layer, visit, smaller);
  return smaller;
}

template <class T, class Use>
rc::Seq<T> without_layers(const T& whole, Use use) {
  return rc::seq::map(rc::shrink::removeChunks(whole.layers), [whole, use](auto layers) {
    T smaller = whole;
    smaller.layers = std::move(layers);
    use(smaller);
    return smaller;
  });
}

template <class T>
rc::Seq<T> each_of(std::vector<T> candidates) {
  return rc::seq::fromContainer(std::move(candidates));
}

std::vector<CoreOptions> plainer(const CoreOptions& options) {
  std::vector<CoreOptions> all;
  const auto with = [&](auto member, auto plain) {
    if (options.*member == plain) return;
    all.push_back(options);
    all.back().*member = plain;
  };
  with(&CoreOptions::offload, std::vector<bool>());
  with(&CoreOptions::prefetch_bytes, std::int64_t{0});
  with(&CoreOptions::prefetch_tensors, kUnlimited);
  with(&CoreOptions::hold_bytes, std::int64_t{0});
  with(&CoreOptions::window_bytes, std::int64_t{0});
  with(&CoreOptions::window_tensors, std::int64_t{1});
  with(&CoreOptions::min_bytes, std::int64_t{0});
  with(&CoreOptions::host_memory, HostMemory::kPinned);
  with(&CoreOptions::reload_pool, ReloadPool::kConsumer);
  with(&CoreOptions::copy_streams, CopyStreams::kOne);
  return all;
}

// Returns the lists without spans, with one span less, or with smaller inner spans.
std::vector<std::vector<DrawnSpan>> plainer(const std::vector<DrawnSpan>& spans) {
  std::vector<std::vector<DrawnSpan>> all;
  if (spans.empty()) return all;
  all.emplace_back();
  all.emplace_back(spans.begin(), spans.end() - 1);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    for (std::vector<DrawnSpan>& inner : plainer(spans[i].inner)) {
      all.push_back(spans);
      all.back()[i].inner = std::move(inner);
    }
  }
  return all;
}

std::vector<Trial> plainer(const Trial& trial) {
  std::vector<Trial> all;
  if (trial.plan) {
    all.push_back(trial);
    all.back().plan = nullptr;
    for (const bool segments : {true, false}) {
      SegmentPlan plan = *trial.plan;
      if (segments ? plan.segments.empty() : plan.choices.empty()) continue;
      if (segments) {
        plan.segments.pop_back();
      } else {
        plan.choices.pop_back();
      }
      all.push_back(trial);
      all.back().plan = std::make_shared<const SegmentPlan>(std::move(plan));
    }
  }
  for (std::vector<DrawnSpan>& spans : plainer(trial.spans)) {
    all.push_back(trial);
    all.back().spans = std::move(spans);
  }
  if (trial.selective) {
    all.push_back(trial);
    all.back().selective = false;
    all.back().policies = {};
  }
  constexpr int kRunsAgain = 2;
  for (std::size_t op = 0; trial.selective && op < trial.policies.size(); ++op) {
    if (trial.policies[op] == kRunsAgain) continue;
    all.push_back(trial);
    all.back().policies[op] = kRunsAgain;
  }
  for (CoreOptions& options : plainer(trial.options)) {
    all.push_back(trial);
    all.back().options = std::move(options);
  }
  return all;
}

// Makes the trial valid again: pops name earlier layers, some layer is not frozen, and for
// interleaved stages the number of micro-batches is a multiple of the number of devices.
void repair(PipelineTrial& trial) {
  const auto frozen = [](const NetLayer& layer) { return layer.frozen; };
  if (trial.layers.empty()) return;
  if (std::ranges::all_of(trial.layers, frozen)) trial.layers.back().frozen = false;
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    if (trial.layers[i].pops + 1 >= static_cast<int>(i)) trial.layers[i].pops = -1;
    for (std::size_t before = 0; before < i; ++before) {
      if (trial.layers[before].pops == trial.layers[i].pops) trial.layers[i].pops = -1;
    }
  }
  if (trial.carried >= static_cast<int>(trial.layers.size())) trial.carried = -1;
  if (trial.kind != PipelineKind::kInterleaved) return;
  const int devices = static_cast<int>(trial.devices());
  trial.microbatches = (trial.microbatches + devices - 1) / devices * devices;
}

std::vector<PipelineTrial> plainer(const PipelineTrial& trial) {
  std::vector<PipelineTrial> all;
  const auto with = [&](auto member, auto plain) {
    if (trial.*member == plain) return;
    all.push_back(trial);
    all.back().*member = plain;
    repair(all.back());
  };
  if (trial.offload) {
    all.push_back(trial);
    all.back().offload.reset();
  }
  with(&PipelineTrial::steps, 1);
  with(&PipelineTrial::ahead, false);
  with(&PipelineTrial::backwards, 1);
  with(&PipelineTrial::nodes_before, 0);
  with(&PipelineTrial::passenger, false);
  with(&PipelineTrial::carried, -1);
  with(&PipelineTrial::ids, false);
  with(&PipelineTrial::random, false);
  with(&PipelineTrial::preserves, true);
  with(&PipelineTrial::backwards_order, false);
  with(&PipelineTrial::balanced, 0);
  with(&PipelineTrial::policies, false);
  with(&PipelineTrial::isolated, false);
  with(&PipelineTrial::stray, Stray::kNothing);
  with(&PipelineTrial::mode, CheckpointMode::kNever);
  if (trial.balanced > 1) with(&PipelineTrial::balanced, trial.balanced - 1);
  if (trial.microbatches > 1 && trial.kind != PipelineKind::kInterleaved) {
    with(&PipelineTrial::microbatches, trial.microbatches - 1);
  }
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    const auto change = [&](auto member, auto plain) {
      if (trial.layers[i].*member == plain) return;
      all.push_back(trial);
      all.back().layers[i].*member = plain;
      repair(all.back());
    };
    change(&NetLayer::pops, -1);
    change(&NetLayer::begins, false);
    change(&NetLayer::detached, false);
    change(&NetLayer::frozen, false);
    change(&NetLayer::stops, false);
    change(&NetLayer::writes, false);
    change(&NetLayer::size, 0);
    change(&NetLayer::cost, 0);
    change(&NetLayer::policy, StagePolicy::kKeep);
  }
  return all;
}

}  // namespace

rc::Seq<Recipe> each_smaller(const Recipe& recipe) {
  std::vector<Recipe> plainer;
  const auto visit = [](auto& each, auto&& visitor) { visit_fields(each, visitor); };
  add_smaller(recipe, visit, plainer);
  auto fewer = without_layers(recipe, [](Recipe&) {});
  auto layers = rc::seq::map(
      rc::shrink::eachElement(recipe.layers,
                              [](const Layer& layer) { return each_of(smaller_layers(layer)); }),
      [recipe](std::vector<Layer> smaller) {
        Recipe with = recipe;
        with.layers = std::move(smaller);
        return with;
      });
  return rc::seq::concat(std::move(fewer), each_of(std::move(plainer)), std::move(layers));
}

rc::Seq<Trial> each_smaller(const Trial& trial) {
  auto recipes = rc::seq::map(each_smaller(trial.recipe), [trial](Recipe recipe) {
    Trial with = trial;
    with.recipe = std::move(recipe);
    return with;
  });
  return rc::seq::concat(std::move(recipes), each_of(plainer(trial)));
}

rc::Seq<PipelineTrial> each_smaller(const PipelineTrial& trial) {
  const auto has_layers = [](const PipelineTrial& each) { return each.layers.size() > 1; };
  auto fewer = rc::seq::filter(without_layers(trial, repair), has_layers);
  return rc::seq::concat(std::move(fewer), each_of(plainer(trial)));
}

}  // namespace ferry::verify
