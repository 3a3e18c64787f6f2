#include "verify/campaign/closer_look.h"

#include "sim/choices/draws.h"
#include "sim/choices/strategies.h"
#include "sim/explore/explorer.h"
#include "sim/explore/shrink_witness.h"
#include "verify/oracles/determinism.h"
#include "verify/oracles/invariants.h"
#include "verify/promises/promises.h"
#include "verify/trials/bends.h"
#include "verify/trials/try_exempt.h"
#include "verify/trials/try_saves.h"

namespace ferry::verify {
namespace {

constexpr int kBends = 4;  // judged at a time

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
  if (auto wrong = judge_promises(first.digest.value())) return wrong;
  try_spec(spec, &again);
  if (first.digest.value() != again.value()) {
    return Verdict{Oracle::kDeterminism, "run again, it issues other operations"};
  }
  if (auto wrong = try_saves(again.value())) return wrong;
  if (again.value() % 8 == 0) {
    if (auto wrong = try_exempt()) return wrong;
  }
  choices::Draws draws(again.value());
  for (int bend = 0; bend < kBends; ++bend) {
    if (auto wrong = judge_bend(draws)) return wrong;
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
