// Declarations of skip tensors, drawn: whether they fit together, what is said of those that do
// not, and the routes between stages of those that do.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shared/skip/layout.h"
#include "shared/skip/namespace.h"
#include "shared/skip/skippable.h"
#include "sim/choices/draws.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {
namespace {

constexpr int kNames = 4;

using DrawnNames = std::array<SkipName, kNames>;

// What a layer stashes and pops, by numbers of names. It may say one twice.
struct Declared {
  std::vector<std::size_t> stashes, pops;
  std::size_t stage = 0;
};

bool has(const std::vector<std::size_t>& numbers, std::size_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

std::vector<Declared> draw_layers(choices::Draws& draws) {
  std::vector<Declared> layers(static_cast<std::size_t>(draws.in(1, 6)));
  std::size_t stage = 0;
  for (Declared& layer : layers) layer.stage = stage += static_cast<std::size_t>(draws.few(3, 2));
  const auto any_layer = [&]() -> std::size_t {
    return static_cast<std::size_t>(draws.in(0, static_cast<int>(layers.size())));
  };
  // Most names fit: stashed once, and popped once behind that.
  for (int tries = 0; tries < 6; ++tries) {
    const auto name = static_cast<std::size_t>(draws.in(0, kNames));
    std::size_t from = any_layer(), to = any_layer();
    if (from > to && !draws.one_in(8)) std::swap(from, to);
    if (from == to && !draws.one_in(8)) continue;
    const bool known = std::any_of(layers.begin(), layers.end(), [name](const Declared& each) {
      return has(each.stashes, name) || has(each.pops, name);
    });
    if (known && !draws.one_in(8)) continue;
    if (!draws.one_in(16)) layers[from].stashes.push_back(name);
    if (!draws.one_in(16)) layers[to].pops.push_back(name);
  }
  return layers;
}

// Two of one text in different namespaces, and others that are in none.
DrawnNames names() {
  return {SkipName("b"), SkipName("a", Namespace()), SkipName("a", Namespace()), SkipName("a")};
}

// What is to be said, by torchgpipe's rules: layer after layer, its stashes and then its pops.
std::vector<std::string> faults_of(const std::vector<Declared>& layers, const DrawnNames& names) {
  std::vector<std::string> faults;
  std::array<bool, kNames> stashed{}, popped{};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string layer = "'layer" + std::to_string(i) + "' ";
    for (const std::size_t name : layers[i].stashes) {
      const std::string text = "'" + names[name].name + "'";
      if (has(layers[i].pops, name)) {
        faults.push_back(layer + "declared " + text + " both as stashable and as poppable");
      } else if (stashed[name]) {
        faults.push_back(layer + "redeclared " + text +
                         " as stashable but not isolated by namespace");
      } else {
        stashed[name] = true;
      }
    }
    for (const std::size_t name : layers[i].pops) {
      const std::string text = "'" + names[name].name + "'";
      if (has(layers[i].stashes, name)) continue;  // it was said
      if (popped[name]) {
        faults.push_back(layer + "redeclared " + text +
                         " as poppable but not isolated by namespace");
      } else if (!stashed[name]) {
        faults.push_back(layer + "declared " + text + " as poppable but it was not stashed");
      } else {
        popped[name] = true;
      }
    }
  }
  for (std::size_t name = 0; name < stashed.size(); ++name) {
    if (!stashed[name] || popped[name]) continue;
    faults.push_back("no module declared '" + names[name].name + "' as poppable but stashed");
  }
  return faults;
}

// Those that no layer pops may be said in any order.
std::string said(std::vector<std::string> faults) {
  if (faults.empty()) return "";
  const auto unpopped = std::find_if(faults.begin(), faults.end(), [](const std::string& fault) {
    return fault.starts_with("no module");
  });
  std::sort(unpopped, faults.end());
  std::string text;
  for (const std::string& fault : faults) text += "\n* " + fault;
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = text.find("\n* "); at != std::string::npos;) {
    const std::size_t next = text.find("\n* ", at + 1);
    lines.push_back(text.substr(at + 3, next == std::string::npos ? next : next - at - 3));
    at = next;
  }
  return lines;
}

struct DrawnRoute {
  std::size_t name, from, to;
};

std::vector<DrawnRoute> routes_of(const std::vector<Declared>& layers) {
  std::vector<DrawnRoute> routes;
  for (const Declared& from : layers) {
    for (const std::size_t name : from.stashes) {
      for (const Declared& to : layers) {
        if (has(to.pops, name)) routes.push_back({name, from.stage, to.stage});
      }
    }
  }
  return routes;
}

// Each route has a number, by which its stages and its name find it.
bool is_layout(const SkipLayout& layout, const std::vector<DrawnRoute>& routes,
               const DrawnNames& names, std::size_t stages) {
  const auto all = layout.routes();
  if (all.size() != routes.size()) return false;
  std::vector<std::vector<std::size_t>> into(stages), out_of(stages);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto route = std::find_if(routes.begin(), routes.end(), [&](const DrawnRoute& each) {
      return names[each.name] == all[i].name;
    });
    if (route == routes.end() || all[i].from != route->from || all[i].to != route->to) return false;
    if (i > 0 && (all[i - 1].from > all[i].from ||
                  (all[i - 1].from == all[i].from && !(all[i - 1].name < all[i].name)))) {
      return false;
    }
    const bool crosses = route->from != route->to;
    if (layout.requires_copy(all[i].name) != crosses) return false;
    if (layout.find_crossing(all[i].name) != (crosses ? i : SkipLayout::kNone)) return false;
    if (!crosses) continue;
    into[route->to].push_back(i);
    out_of[route->from].push_back(i);
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    if (layout.into(stage) != into[stage] || layout.out_of(stage) != out_of[stage]) return false;
  }
  return !layout.requires_copy(SkipName("nobody's"));
}

Objection judge_layout(std::uint64_t seed, const Rules& rules) {
  choices::Draws draws(seed);
  const std::vector<Declared> layers = draw_layers(draws);
  const DrawnNames given = names();
  std::vector<Skippable> declared;
  std::vector<std::size_t> stages;
  for (const Declared& layer : layers) {
    declared.push_back({"layer" + std::to_string(declared.size()), {}, {}});
    for (const std::size_t name : layer.stashes) declared.back().stashes.push_back(given[name]);
    for (const std::size_t name : layer.pops) declared.back().pops.push_back(given[name]);
    stages.push_back(layer.stage);
  }
  const std::string must = said(faults_of(layers, given));
  try {
    const SkipLayout layout = skip_layout(declared, stages, rules);
    if (!must.empty()) return "declarations were taken:" + must;
    if (is_layout(layout, routes_of(layers), given, stages.back() + 1)) return std::nullopt;
    return "a layout has other routes than were declared";
  } catch (const SkipError& error) {
    const std::string text = error.what();
    const bool begins = text.starts_with("one or more pairs of stash and pop do not match:\n");
    if (begins && !must.empty() && said(lines_of(text)) == must) return std::nullopt;
    return "it must say" + must + "\nnot " + text;
  }
}

TEST(LayoutDrawn, DeclarationsThatFitHaveTheirRoutesAndOthersAreRefused) {
  const auto core = [](std::uint64_t seed) { return judge_layout(seed, {}); };
  EXPECT_EQ(first_objection(core), "");
}

TEST(LayoutDrawn, EachRuleOfDeclarationsShows) { expect_shown(kShownByLayouts, judge_layout); }

}  // namespace
}  // namespace ferry::test
