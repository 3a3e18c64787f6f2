#include "verify/campaign/closer_look.h"

#include "sim/choices/strategies.h"
#include "sim/explore/explorer.h"
#include "sim/explore/shrink_witness.h"
#include "verify/oracles/determinism.h"
#include "verify/oracles/invariants.h"

namespace ferry::verify {
namespace {

class DigestAndRecording final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    digest(op);
    recording(op);
  }
  OpDigest digest;
  explore::Recording recording;
};

std::optional<Verdict> look(const RunSpec& spec, Coverage& coverage) {
  DigestAndRecording first;
  OpDigest again;
  try_spec(spec, &first);
  try_spec(spec, &again);
  if (first.digest.value() != again.value()) {
    return Verdict{Oracle::kDeterminism, "the same run, made again, issues other operations"};
  }
  if (spec.core) {
    if (auto wrong = spec.core->try_parts(again.value())) return wrong;
  }
  return try_orders(first.recording, again.value(), coverage);
}

}  // namespace

std::optional<Verdict> look_closer(const RunSpec& spec, Coverage& coverage) {
  return asking_invariants([&] { return look(spec, coverage); });
}

std::optional<Verdict> try_orders(const explore::Recording& recording, std::uint64_t seed,
                                  Coverage& coverage) {
  constexpr auto kDevice = static_cast<std::size_t>(choices::ChoicePoint::kDevice);
  const explore::Explorer explorer(recording);
  choices::RandomChoices random(seed);
  choices::PctChoices pct(seed, explorer.graph().size(), 3);
  for (choices::Choices* choices :
       {static_cast<choices::Choices*>(&random), static_cast<choices::Choices*>(&pct)}) {
    const auto order = explore::draw_order(explorer.graph(), *choices);
    ++coverage.schedules;
    coverage.asked[kDevice] += choices->asked()[kDevice];
    if (!explorer.difference(order, explore::Evidence::kRead)) continue;
    const auto witness = explorer.witness(explore::schedule_of(order));
    const explore::Witness small = explore::shrink_witness(explorer, *witness).witness;
    return Verdict{Oracle::kSchedule, "no race is reported, but in schedule " +
                                          to_string(explorer.graph(), small.schedule) + " " +
                                          to_string(explorer, small)};
  }
  return std::nullopt;
}

}  // namespace ferry::verify
