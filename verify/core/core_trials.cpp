#include "verify/core/core_trials.h"

#include "sim/choices/draws.h"
#include "verify/trials/bends.h"
#include "verify/trials/try_core.h"
#include "verify/trials/try_exempt.h"
#include "verify/trials/try_pipeline.h"
#include "verify/trials/try_saves.h"
#include "verify/trials/try_wards.h"

namespace ferry::verify {
namespace {

constexpr int kBends = 4;  // random mutants that one call judges

class Trials final : public CoreTrials {
 public:
  std::optional<Verdict> try_spec(const RunSpec& spec,
                                  const Conditions& conditions) const override {
    const Subject subject{spec.mutant.rules, spec.mutant.mutation, spec.mutant.world_fault};
    if (spec.is_pipeline()) return try_pipeline(spec.pipeline, subject, conditions);
    return try_core(spec.trial, subject, conditions);
  }
  std::optional<Verdict> try_parts(std::uint64_t number) const override {
    if (auto wrong = try_saves(number)) return wrong;
    if (auto wrong = try_wards(number)) return wrong;
    if (number % 8 == 0) {
      if (auto wrong = try_exempt()) return wrong;
    }
    choices::Draws draws(number);
    for (int bend = 0; bend < kBends; ++bend) {
      if (auto wrong = judge_bend(draws)) return wrong;
    }
    return std::nullopt;
  }
};

}  // namespace

const CoreTrials& core_trials() {
  static const Trials trials;
  return trials;
}

}  // namespace ferry::verify
