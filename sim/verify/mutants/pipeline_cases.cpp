// Mutants of the pipeline that the gradients do not show: each has a case of its own, which is true
// where the core does it right.
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/verify/mutants/cases.h"
#include "sim/verify/trials/try_pipeline.h"

namespace ferry::verify {
namespace {

// Two layers in two stages.
PipelineTrial two_stages(PipelineKind kind, CheckpointMode mode, int microbatches) {
  PipelineTrial trial;
  trial.layers = {{}, {0, -1, true}};
  trial.kind = kind;
  trial.mode = mode;
  trial.microbatches = microbatches;
  return trial;
}

std::vector<sim::SimDevice> devices_of(NetRun& run) {
  std::vector<sim::SimDevice> devices;
  for (std::uint32_t d = 0; d < run.devices(); ++d) devices.emplace_back(run.machine(), d);
  return devices;
}

std::set<const sim::Node*> reachable(const sim::Edge& from) {
  std::set<const sim::Node*> seen;
  std::vector<const sim::Node*> open = {from.node.get()};
  while (!open.empty()) {
    const sim::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const sim::Edge& edge : node->next) {
      if (edge) open.push_back(edge.node.get());
    }
  }
  return seen;
}

// One thread that takes nodes by the order of their making goes backward in the right order anyway;
// PyTorch has a thread for each device. So: the graph of the second micro-batch leads to the first
// one's, beyond the weights.
bool microbatches_are_ordered(Rules rules) {
  NetRun run(two_stages(PipelineKind::kAutograd, CheckpointMode::kNever, 2), true);
  const auto outputs = run.forward(devices_of(run), {}, rules);
  bool ordered = false;
  for (const sim::Node* node : reachable(outputs[1].front().edge)) {
    ordered |= !node->is_leaf() && reachable(outputs[0].front().edge).contains(node);
  }
  return ordered;
}

// What is issued to the stream on which the first stage computes.
class IssueOrder final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kKernel && op.name == "layer0" && ++runs_ == 2) again_ = at_;
    const bool takes = op.kind == StreamOpKind::kWait && op.step == Step::kTakeReceived;
    if (takes && op.stream == stream && takes_ == 0) takes_ = at_;
    ++at_;
  }
  StreamId stream{};
  bool runs_again_before_it_takes() const { return again_ != 0 && again_ < takes_; }

 private:
  std::size_t at_ = 1;
  int runs_ = 0;
  std::size_t again_ = 0;
  std::size_t takes_ = 0;
};

// The first stage receives nothing but its gradient.
bool recompute_does_not_wait(PipelineKind kind, const Rules& rules) {
  IssueOrder order;  // outlives the run, which issues frees at its end
  NetRun run(two_stages(kind, CheckpointMode::kAlways, 1), true);
  order.stream = run.machine().compute_stream(0);
  run.machine().add_consumer(&order);
  run.pipelined(devices_of(run), rules);
  return order.runs_again_before_it_takes();
}
bool recomputes_do_not_wait(Rules rules) {
  return recompute_does_not_wait(PipelineKind::kAutograd, rules) &&
         recompute_does_not_wait(PipelineKind::k1F1B, rules);
}

}  // namespace

std::map<std::string, MutantCase> pipeline_cases() {
  return {{"rule: order microbatches", case_of_rules(microbatches_are_ordered)},
          {"rule: recompute early", case_of_rules(recomputes_do_not_wait)}};
}

}  // namespace ferry::verify
