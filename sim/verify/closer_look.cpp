#include "sim/verify/closer_look.h"

#include "sim/explore/explorer.h"
#include "sim/explore/shrink.h"
#include "sim/oracles/determinism.h"
#include "sim/strategies.h"

namespace ferry::verify {
namespace {

class Watch final : public sim::StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    digest(op);
    recording(op);
  }
  OpDigest digest;
  sim::Recording recording;
};

}  // namespace

std::optional<Verdict> look_closer(const Attempt& attempt, Coverage& coverage) {
  Watch first;
  OpDigest again;
  try_attempt(attempt, &first);
  try_attempt(attempt, &again);
  if (first.digest.value() != again.value()) {
    return Verdict{"determinism", "run again, it issues other operations"};
  }
  return try_orders(first.recording, again.value(), coverage);
}

std::optional<Verdict> try_orders(const sim::Recording& recording, std::uint64_t seed,
                                  Coverage& coverage) {
  constexpr auto kDevice = static_cast<std::size_t>(sim::ChoicePoint::kDevice);
  const sim::Explorer explorer(recording);
  sim::RandomChoices random(seed);
  sim::PctChoices pct(seed, explorer.graph().size(), 3);
  for (sim::Choices* choices :
       {static_cast<sim::Choices*>(&random), static_cast<sim::Choices*>(&pct)}) {
    const auto order = sim::draw_order(explorer.graph(), *choices);
    ++coverage.schedules;
    coverage.asked[kDevice] += choices->asked()[kDevice];
    if (!explorer.difference(order, sim::Evidence::kRead)) continue;
    const auto witness = explorer.witness(sim::schedule_of(order));
    const sim::Witness small = sim::shrink(explorer, *witness).witness;
    return Verdict{"schedule", "no race is reported, but in schedule " +
                                   to_string(explorer.graph(), small.schedule) + " " +
                                   to_string(explorer, small)};
  }
  return std::nullopt;
}

}  // namespace ferry::verify
