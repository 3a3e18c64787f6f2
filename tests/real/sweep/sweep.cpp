#include "tests/real/sweep/sweep.h"

#include <optional>
#include <utility>

#include "shared/checkpoint/selective.h"
#include "tests/real/sweep/child.h"

namespace ferry::sweep {
namespace {

void worsen(Tried& tried, Verdict verdict, const std::string& why) {
  if (verdict <= tried.verdict) return;
  tried.verdict = verdict;
  tried.why = why;
}

// Which arguments may require a gradient is not in a schema. All of them; else one alone.
std::optional<Outcome> differentiable(Case& drawn, Place place, Tried& tried) {
  std::optional<Outcome> found;
  for (std::size_t alone = 0; alone <= drawn.leaves.size(); ++alone) {
    for (std::size_t i = 0; i < drawn.leaves.size(); ++i) {
      drawn.leaves[i].requires_grad = alone == 0 || i == alone - 1;
    }
    Outcome outcome = run_step(drawn, place, plain(), Backwards::kSeveral);
    if (outcome.differentiable) return outcome;
    if (!outcome.parts.empty()) worsen(tried, Verdict::kNotDifferentiable, "");
    if (drawn.leaves.size() == 1) break;
  }
  return found;
}

// An op that reads what it did not write may do so with luck.
bool is_stable(const Case& drawn, Place place, const Outcome& plainly, int runs) {
  for (; runs > 0; --runs) {
    const Outcome again = run_step(drawn, place, plain(), Backwards::kSeveral);
    if (!difference(plainly, again, Backwards::kSeveral).empty()) return false;
  }
  return true;
}

void compare(const Case& drawn, Place place, const Outcome& plainly, const std::string& where,
             const std::vector<NamedWay>& ways, Tried& tried) {
  if (!is_stable(drawn, place, plainly, 1)) return worsen(tried, Verdict::kUnstable, where);
  worsen(tried, Verdict::kEqual, "");
  for (const NamedWay& way : ways) {
    const Outcome ours = run_step(drawn, place, way.run, way.backwards);
    ++tried.steps;
    const std::string differs = difference(plainly, ours, way.backwards);
    if (differs.empty()) continue;
    const std::string why = where + ", " + way.name + ": " + differs;
    if (differs.find(selective_text::kMutated) != std::string::npos) {
      worsen(tried, Verdict::kRefused, why);
    } else {
      const bool stable = is_stable(drawn, place, plainly, 8);
      worsen(tried, stable ? Verdict::kDifferent : Verdict::kUnstable, why);
    }
  }
}

bool survives(const Case& drawn) {
  return in_a_child([&] {
           Case tried = drawn;
           Tried ignored;
           differentiable(tried, Place::kLast, ignored);
           return std::size_t{0};
         })
      .has_value();
}

// Its numbers are offsets into a storage, and nothing checks them: it is called as it was recorded.
bool trusts_offsets(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name.starts_with("aten::_reshape_alias") || name == "aten::set_";
}

}  // namespace

const char* text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNotCalled:
      return "not called";
    case Verdict::kNotDifferentiable:
      return "not differentiable";
    case Verdict::kEqual:
      return "equal";
    case Verdict::kUnstable:
      return "unstable";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kDifferent:
      return "different";
  }
  return "";
}

std::vector<Call> usable(const std::vector<Call>& drawn) {
  const auto found = in_a_child([&] {
    const Variation as_drawn = variations(false).front();
    std::size_t runs = drawn.size();
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      std::optional<Case> step = varied(drawn[i], as_drawn);
      Tried tried;
      if (step && differentiable(*step, Place::kLast, tried)) return i;
      if (tried.verdict != Verdict::kNotCalled && runs == drawn.size()) runs = i;
    }
    return runs;
  });
  if (!found || *found == drawn.size()) return {};
  return {drawn[*found]};
}

Tried try_overload(const std::vector<Call>& calls, const std::vector<Variation>& variations,
                   const std::vector<NamedWay>& ways) {
  Tried tried;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const Variation& variation : variations) {
      if (&variation != &variations.front() && trusts_offsets(calls[i].op)) break;
      std::optional<Case> drawn = varied(calls[i], variation);
      if (!drawn || (variation.reshapes && !survives(*drawn))) continue;
      for (const Place place : {Place::kLast, Place::kFollowed}) {
        const std::string where = "call " + std::to_string(i) + ", " + variation.name +
                                  (place == Place::kLast ? ", last" : ", followed");
        const auto plainly = differentiable(*drawn, place, tried);
        if (!plainly) break;
        compare(*drawn, place, *plainly, where, ways, tried);
      }
    }
  }
  return tried;
}

}  // namespace ferry::sweep
