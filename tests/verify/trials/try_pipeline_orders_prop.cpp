// Small pipelines in every order of their turns, one by one, against the orders that are taken for
// them: each class once, and what one of its runs does, all of them do.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/choices/hash.h"
#include "sim/choices/turn_orders.h"
#include "sim/gpu/op_touches.h"
#include "tests/verify/support/gen.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::verify {
namespace {

using choices::OrderedChoices;
using choices::TurnOrders;

// Hashes what each stream was given, with addresses, in its order.
class StreamHashes final : public StreamOpConsumer {
 public:
  explicit StreamHashes(choices::Choices& choices) : touches_(choices) {}
  void operator()(const StreamOp& op) override {
    touches_(op);
    if (op.kind == StreamOpKind::kFree || op.kind == StreamOpKind::kAlloc) return;
    std::uint64_t& hash = hashes_[op.stream];
    hash = choices::combine(hash, static_cast<std::uint64_t>(op.kind));
    hash = choices::combine(hash, static_cast<std::uint64_t>(op.step));
    for (const char letter : op.name)
      hash = choices::combine(hash, static_cast<unsigned char>(letter));
    for (const auto* ranges : {&op.reads, &op.writes}) {
      for (const Range range : *ranges) {
        hash = choices::combine(choices::combine(hash, range.address), range.bytes);
      }
    }
  }
  std::string text() const {
    std::string text;
    for (const auto& [stream, hash] : hashes_) text += std::to_string(hash) + " ";
    return text;
  }

 private:
  sim::OpTouches touches_;
  std::map<StreamId, std::uint64_t> hashes_;
};

// All that a run does, as text.
std::string outcome(const PipelineTrial& trial, choices::Choices& choices) {
  StreamHashes streams(choices);
  const NetResult result = run_pipelined(trial, {}, {&choices, &streams});
  std::string text = streams.text() + result.error;
  for (const std::uint64_t gradient : result.gradients) text += std::to_string(gradient) + " ";
  for (const check::Hazard& hazard : result.hazards) text += to_string(hazard);
  return text + std::to_string(result.kept) + " " + std::to_string(result.left);
}

struct Explored {
  std::map<std::uint64_t, std::string> outcomes;  // by class
  bool consistent = true;
  std::uint64_t classes = 0, runs = 0;
};

// None: there are more runs.
std::optional<Explored> explore(const PipelineTrial& trial, TurnOrders::Which which,
                                std::uint64_t most) {
  Explored found;
  TurnOrders orders(which);
  for (bool more = true; more;) {
    if (orders.runs() > most) return std::nullopt;
    OrderedChoices choices(orders);
    const std::string text = outcome(trial, choices);
    more = orders.next();
    if (orders.last_repeated()) continue;
    const auto [at, is_new] = found.outcomes.emplace(orders.last_class(), text);
    found.consistent &= at->second == text;
  }
  found.classes = orders.classes();
  found.runs = orders.runs();
  return found;
}

TEST(PipelineOrdersProp, OneRunStandsForItsClass) {
  constexpr std::uint64_t kMost = 120;
  EXPECT_TRUE(rc::check("as brute force says", [] {
    PipelineTrial trial = *test::any_pipeline_trial();
    trial.steps = 1;
    trial.backwards = 1;
    if (trial.kind != PipelineKind::kInterleaved) {
      trial.microbatches = std::min(trial.microbatches, *test::in_range(1, 3));
    }
    trial.drop_refused();
    const auto all = explore(trial, TurnOrders::Which::kAll, kMost);
    if (!all) {
      RC_TAG("more orders than are tried");
      return;
    }
    const auto found = explore(trial, TurnOrders::Which::kClasses, kMost);
    RC_ASSERT(found.has_value());
    RC_ASSERT(all->consistent);
    RC_ASSERT(found->outcomes == all->outcomes);
    RC_ASSERT(found->classes == all->outcomes.size());
    RC_CLASSIFY(found->classes > 1, "several classes");
    RC_CLASSIFY(found->runs > found->classes, "some runs repeated");
    RC_CLASSIFY(found->runs < all->runs, "fewer than all");
  }));
}

}  // namespace
}  // namespace ferry::verify
