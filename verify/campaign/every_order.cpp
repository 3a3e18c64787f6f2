#include "verify/campaign/every_order.h"

#include <algorithm>
#include <utility>

#include "sim/choices/turn_orders.h"
#include "sim/gpu/op_touches.h"

namespace ferry::verify {
namespace {

// Passes each operation to both consumers.
class Both final : public StreamOpConsumer {
 public:
  Both(StreamOpConsumer& first, StreamOpConsumer* second) : first_(first), second_(second) {}
  void operator()(const StreamOp& op) override {
    first_(op);
    if (second_) (*second_)(op);
  }

 private:
  StreamOpConsumer& first_;
  StreamOpConsumer* second_;
};

}  // namespace

RunSpec in_few_turns(RunSpec spec) {
  PipelineTrial& trial = spec.pipeline;
  trial.steps = 1;
  trial.backwards = 1;
  trial.microbatches = trial.kind == PipelineKind::kInterleaved ? static_cast<int>(trial.devices())
                                                                : std::min(trial.microbatches, 2);
  trial.drop_refused();
  return spec;
}

DrawnRun try_every_order(RunSpec spec, std::uint64_t most, StreamOpConsumer* watch,
                         const std::function<bool()>& late) {
  DrawnRun drawn;
  drawn.spec = std::move(spec);
  drawn.runs = 0;
  choices::TurnOrders orders;
  bool more = true;
  while (more && orders.runs() <= most && !late()) {
    choices::OrderedChoices choices(orders);
    sim::OpTouches touches(choices);
    Both both(touches, watch);
    drawn.verdict = try_spec(drawn.spec, &choices, &both);
    ++drawn.runs;
    for (std::size_t i = 0; i < drawn.asked.size(); ++i) drawn.asked[i] += choices.asked()[i];
    if (drawn.verdict) drawn.spec.deviations = choices.deviations();
    more = !drawn.verdict && orders.next();
    drawn.classes += drawn.verdict || !orders.last_repeated() ? 1 : 0;
  }
  drawn.cut_off = more;
  return drawn;
}

}  // namespace ferry::verify
