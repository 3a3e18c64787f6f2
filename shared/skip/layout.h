// The routes of skip tensors in a pipeline: the stage that stashes each one and the stage that pops
// it.
//
// Source: torchgpipe/skip/layout.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/invariant.h"
#include "shared/skip/namespace.h"
#include "shared/skip/skip_rules.h"
#include "shared/skip/skippable.h"

namespace ferry {

struct SkipRoute {
  SkipName name;
  std::size_t from = 0;  // the stage that stashes it, and the stage that pops it
  std::size_t to = 0;
  bool crosses() const { return from != to; }
};

class SkipLayout {
 public:
  SkipLayout() = default;
  // Takes the routes in any order. Each name occurs once.
  explicit SkipLayout(std::vector<SkipRoute> routes) : routes_(std::move(routes)) {
    std::sort(routes_.begin(), routes_.end(), [](const SkipRoute& a, const SkipRoute& b) {
      return a.from != b.from ? a.from < b.from : a.name < b.name;
    });
    std::set<SkipName> names;
    for (const SkipRoute& route : routes_) {
      const bool is_alone = names.insert(route.name).second;
      invariant(is_alone, "a skip tensor has one route");
    }
  }

  // The routes, sorted by stage and then by name. Other calls refer to a route by its index here.
  std::span<const SkipRoute> routes() const { return routes_; }

  static constexpr std::size_t kNone = ~std::size_t{0};
  // Returns the route of this name if it crosses stages; kNone if it stays within one stage.
  std::size_t find_crossing(const SkipName& name) const {
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (routes_[i].name == name) return routes_[i].crosses() ? i : kNone;
    }
    return kNone;
  }
  bool requires_copy(const SkipName& name) const { return find_crossing(name) != kNone; }

  // Returns the crossing routes that arrive at, or leave, a stage, sorted by the stashing stage.
  std::vector<std::size_t> into(std::size_t stage) const {
    return crossing([stage](const SkipRoute& route) { return route.to == stage; });
  }
  std::vector<std::size_t> out_of(std::size_t stage) const {
    return crossing([stage](const SkipRoute& route) { return route.from == stage; });
  }
  // True if a route goes past the stage, from an earlier one to a later one.
  bool passes(std::size_t stage) const {
    return std::any_of(routes_.begin(), routes_.end(), [stage](const SkipRoute& route) {
      return route.from < stage && stage < route.to;
    });
  }

 private:
  template <class Which>
  std::vector<std::size_t> crossing(Which which) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (routes_[i].crosses() && which(routes_[i])) found.push_back(i);
    }
    return found;
  }

  std::vector<SkipRoute> routes_;
};

// Returns the layout of layers in stages; stages[i] is the stage of layer i. Throws SkipError if
// declarations clash.
inline SkipLayout skip_layout(std::span<const Skippable> layers,
                              std::span<const std::size_t> stages,
                              const SkipRules& rules = Rules()) {
  invariant(stages.size() == layers.size(), "each layer has its stage");
  invariant(std::is_sorted(stages.begin(), stages.end()), "no layer is in a stage before its own");
  verify_skippables(layers, rules);
  std::vector<SkipRoute> routes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const SkipName& name : layers[i].stashes) routes.push_back({name, stages[i], 0});
    for (const SkipName& name : layers[i].pops) {
      const auto is_it = [&](const SkipRoute& each) {
        return rules.keeps_spaces_apart() ? each.name == name : each.name.name == name.name;
      };
      const auto route = std::find_if(routes.begin(), routes.end(), is_it);
      route->to = stages[i];
    }
  }
  return SkipLayout(std::move(routes));
}

}  // namespace ferry
