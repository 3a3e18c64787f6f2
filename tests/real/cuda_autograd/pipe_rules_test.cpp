// Every rule of skip tensors and pipelines, on two virtual GPUs with LibTorch's own autograd: a
// mutant that has not the rule is caught, by a case that is true where the core does it right and
// by what the checkers say of the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "real/cuda/cuda_device.h"
#include "real/pipeline/torch_pipe_device.h"
#include "real/pipeline/worker_threads.h"
#include "shared/offload/offloader.h"
#include "shared/pipeline/balance.h"
#include "shared/pipeline/pipeline.h"
#include "shared/pipeline/scheduled_pipeline.h"
#include "shared/skip/layout.h"
#include "shared/skip/tracker.h"
#include "tests/real/cuda_autograd/trained.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/verdict.h"

namespace ferry::real {
namespace {

using Function = PipelineStage<TorchAutograd>::Function;
using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

constexpr std::int64_t kElements = 512;
const c10::Device kOther(c10::DeviceType::CUDA, 1);
const SkipName kSkip("skip");

// Says in which order a stage ran and a device's stream was made to wait for what arrived.
class Told : public TorchPipeDevice {
 public:
  struct Log {
    std::mutex mutex;
    std::vector<std::string> lines;
    void add(const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    }
    std::ptrdiff_t find(const std::string& line, int which = 1) const {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i] == line && --which == 0) return static_cast<std::ptrdiff_t>(i);
      }
      return static_cast<std::ptrdiff_t>(lines.size());
    }
    std::int64_t count(const std::string& line) const {
      return std::count(lines.begin(), lines.end(), line);
    }
  };
  Told(c10::Device device, std::shared_ptr<Log> log)
      : TorchPipeDevice(device), log_(std::move(log)) {}
  void wait(Step step, const Stream& stream, const Event& event) const {
    if (step == Step::kTakeReceived) log_->add("takes " + std::to_string(stream.device_index()));
    TorchPipeDevice::wait(step, stream, event);
  }
  Tensor transfer(Step step, const Tensor& tensor, Told& to, const Stream& stream) const {
    return TorchPipeDevice::transfer(step, tensor, to, stream);
  }

 private:
  std::shared_ptr<Log> log_;
};
static_assert(PipelineDevice<Told>);

// Three stages, the last two on the other device; what the first stashes the third pops. Numbers
// are small and whole, so sums are exact in any order.
struct Net {
  explicit Net(Rules broken) : rules(broken) {
    const auto weight = [](double value, c10::Device device) {
      return torch::full({kElements}, value, torch::device(device).dtype(torch::kFloat64))
          .requires_grad_();
    };
    weights = {weight(2, kGpu), weight(3, kOther), weight(5, kOther), weight(7, kGpu)};
  }
  void scribble(c10::Device device) const {
    torch::full({kElements}, NAN, torch::device(device).dtype(torch::kFloat64));
  }
  std::vector<Function> stages() {
    const auto skips = [] { return current_skip_tracker(TorchAutograd()); };
    return {[=, this](Tensors x) {
              log->add("runs 0");
              torch::Tensor stashed = x[0] * weights[3];
              stashed_again = WeakStorage(stashed.storage().getWeakStorageImpl());
              skips()->save(kSkip, std::move(stashed));
              scribble(kGpu);
              return Tensors{x[0] * weights[0]};
            },
            [=, this](Tensors x) {
              log->add("runs 1");
              scribble(kOther);
              return Tensors{x[0] * weights[1]};
            },
            [=, this](Tensors x) {
              log->add("runs 2");
              const torch::Tensor popped = skips()->load(kSkip);
              last_popped = WeakStorage(popped.storage().getWeakStorageImpl());
              scribble(kOther);
              // The sum's gradient, expanded, is the popped one's: so it crosses with stride 0.
              return Tensors{x[0] * weights[2] + popped};
            }};
  }
  std::vector<Told> devices() const { return {Told(kGpu, log), Told(kOther, log)}; }
  std::vector<Tensors> inputs(std::int64_t count = 3) const {
    std::vector<Tensors> all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back({torch::arange(kElements, torch::device(kGpu).dtype(torch::kFloat64))
                         .remainder(static_cast<double>(i + 3))});
    }
    return all;
  }
  SkipLayout layout() const { return SkipLayout({{kSkip, 0, 2}}); }
  std::vector<Tensors> forward(const CorePipelineOptions& options, std::int64_t count = 3) {
    const auto functions = stages();
    Pipeline pipeline(devices(), TorchAutograd(), WorkerThreads(2),
                      std::vector<PipelineStage<TorchAutograd>>{
                          {0, functions[0]}, {1, functions[1]}, {1, functions[2]}},
                      layout(), options, rules);
    return pipeline.forward(inputs(count));
  }
  void backward(const std::vector<Tensors>& outputs) const {
    std::vector<torch::Tensor> roots;
    for (const Tensors& each : outputs) roots.push_back(each.front().sum());
    torch::autograd::backward(roots);
  }
  bool has_gradients() const {
    torch::Tensor sum = torch::zeros({kElements}, torch::kFloat64);
    for (const Tensors& each : inputs()) sum = sum + each.front().cpu();
    const std::array<double, 4> factors = {15, 10, 6, 1};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const torch::Tensor& gradient = weights[i].grad();
      if (!gradient.defined() || !gradient.cpu().equal(sum * factors[i])) return false;
    }
    return true;
  }

  const Rules rules;
  std::vector<torch::Tensor> weights;
  std::shared_ptr<Told::Log> log = std::make_shared<Told::Log>();
  std::optional<WeakStorage> stashed_again;
  std::optional<WeakStorage> last_popped;
};

CorePipelineOptions mode(CheckpointMode checkpoint) {
  CorePipelineOptions options;
  options.checkpoint = checkpoint;
  return options;
}

bool gradients_are_right(Rules rules) {
  for (const CheckpointMode each :
       {CheckpointMode::kNever, CheckpointMode::kExceptLast, CheckpointMode::kAlways}) {
    Net net(rules);
    net.backward(net.forward(mode(each)));
    if (!net.has_gradients()) return false;
  }
  return true;
}

bool what_is_popped_goes(Rules rules) {
  Net net(rules);
  const auto outputs = net.forward(mode(CheckpointMode::kNever));
  return net.last_popped->expired();
}

bool what_is_stashed_again_goes(Rules rules) {
  Net net(rules);
  const auto outputs = net.forward(mode(CheckpointMode::kAlways));
  net.backward(outputs);
  return net.log->count("runs 0") == 6 && net.stashed_again->expired();
}

std::set<const torch::autograd::Node*> reachable(const torch::Tensor& from) {
  std::set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open = {from.grad_fn().get()};
  while (!open.empty()) {
    const torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (edge.function) open.push_back(edge.function.get());
    }
  }
  return seen;
}

// The graph of the second micro-batch leads to the first one's, beyond the weights.
bool microbatches_are_ordered(Rules rules) {
  Net net(rules);
  const auto outputs = net.forward(mode(CheckpointMode::kNever));
  const auto first = reachable(outputs[0].front());
  for (const torch::autograd::Node* node : reachable(outputs[1].front())) {
    if (node->num_outputs() > 0 && first.contains(node)) return true;
  }
  return false;
}

// Two gradients come back to the first stage's device: the skip tensor's, before that stage runs
// again, and its outputs'.
bool recomputes_do_not_wait(Rules rules) {
  Net net(rules);
  net.backward(net.forward(mode(CheckpointMode::kAlways), 1));
  return net.log->count("takes 0") == 2 && net.log->find("runs 0", 2) < net.log->find("takes 0", 2);
}

bool workers_have_the_callers_mode(Rules rules) {
  const torch::NoGradGuard without;
  Net net(rules);
  return !net.forward(mode(CheckpointMode::kNever))[0].front().requires_grad();
}

bool some_microbatches_run_again(Rules rules) {
  Net net(rules);
  net.backward(net.forward(mode(CheckpointMode::kExceptLast)));
  return net.log->count("runs 0") == 3 + 2;
}

bool some_stages_run_again(Rules rules) {
  Net net(rules);
  CorePipelineOptions options = mode(CheckpointMode::kAlways);
  options.checkpointed_stages = {true, false, true};
  net.backward(net.forward(options));
  return net.log->count("runs 0") == 6 && net.log->count("runs 1") == 3;
}

bool inputs_are_put_away(Rules rules) {
  Net net(rules);
  CoreOptions options;
  options.min_bytes = 1;
  Offloader<CudaDevice, TorchAutograd> offloader(CudaDevice({.index = 0}), TorchAutograd(),
                                                 options);
  ScheduledPipeline pipeline(
      std::vector<Told>{net.devices()[0]}, TorchAutograd(), WorkerThreads(1),
      std::vector<Function>{[&](Tensors x) { return Tensors{x[0] * net.weights[0]}; }},
      SkipLayout(), ScheduleKind::kGpipe, mode(CheckpointMode::kAlways), rules);
  pipeline.save_inputs(0, offloader.hooks());
  pipeline.step(net.inputs(), [](Tensors x, std::size_t) { return x.front().sum(); });
  return offloader.statistics().offloaded_count == 3;
}

// The second stage doubles what it is given, in place; the first may have stashed that.
bool write_is_refused(Rules rules, CheckpointMode checkpoint, bool stashed) {
  const Net net(rules);
  const auto skips = [] { return current_skip_tracker(TorchAutograd()); };
  const Function make = [&](Tensors x) {
    Tensors made = {x[0] * net.weights[0]};
    if (stashed) skips()->save(kSkip, made[0]);
    return made;
  };
  const Function write = [](Tensors x) { return Tensors{x[0].mul_(2)}; };
  const Function pop = [&](Tensors x) {
    return Tensors{stashed ? x[0] * net.weights[2] + skips()->load(kSkip) : x[0]};
  };
  Pipeline pipeline(net.devices(), TorchAutograd(), WorkerThreads(2),
                    std::vector<PipelineStage<TorchAutograd>>{{0, make}, {1, write}, {1, pop}},
                    stashed ? net.layout() : SkipLayout(), mode(checkpoint), rules);
  try {
    pipeline.forward(net.inputs(1));
  } catch (const std::exception& error) {
    return std::string(error.what()).find("stage 1 writes in place its input") == 0;
  }
  return false;
}
bool rewriting_is_refused(Rules rules) {
  return write_is_refused(rules, CheckpointMode::kAlways, false);
}
bool writing_what_others_have_is_refused(Rules rules) {
  return write_is_refused(rules, CheckpointMode::kNever, true);
}

bool stages_are_cut_by_costs(Rules rules) {
  const std::array<std::int64_t, 5> costs = {4, 1, 1, 1, 1};
  return balance(costs, 2, rules) == std::vector<std::size_t>{1, 4};
}

bool a_stash_that_nobody_pops_is_refused(Rules rules) {
  const std::array<Skippable, 1> layers = {Skippable{"layer", {kSkip}, {}}};
  try {
    verify_skippables(layers, rules);
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

bool namespaces_are_apart(Rules rules) {
  const SkipName one("skip", Namespace()), other("skip", Namespace());
  const std::array<Skippable, 4> layers = {Skippable{"a", {one}, {}}, Skippable{"b", {other}, {}},
                                           Skippable{"c", {}, {other}}, Skippable{"d", {}, {one}}};
  const std::array<std::size_t, 4> stages = {0, 1, 2, 3};
  const SkipLayout layout = skip_layout(layers, stages, rules);
  return layout.into(2) == std::vector<std::size_t>{1} &&
         layout.into(3) == std::vector<std::size_t>{0};
}

using Case = bool (*)(Rules);

const std::map<Rule, Case>& cases() {
  static const std::map<Rule, Case> all = {
      {Rule::kGiveUpPopped, what_is_popped_goes},
      {Rule::kForgetRestash, what_is_stashed_again_goes},
      {Rule::kOwnPopped, gradients_are_right},
      {Rule::kJoinStashed, gradients_are_right},
      {Rule::kOrderPops, gradients_are_right},
      {Rule::kOrderPortals, gradients_are_right},
      {Rule::kOrderMicrobatches, microbatches_are_ordered},
      {Rule::kRecomputeEarly, recomputes_do_not_wait},
      {Rule::kCallersMode, workers_have_the_callers_mode},
      {Rule::kCheckpointSome, some_microbatches_run_again},
      {Rule::kCheckpointStages, some_stages_run_again},
      {Rule::kPutAway, inputs_are_put_away},
      {Rule::kRefuseRewriting, rewriting_is_refused},
      {Rule::kRefuseSharing, writing_what_others_have_is_refused},
      {Rule::kBalanceCosts, stages_are_cut_by_costs},
      {Rule::kPopStashed, a_stash_that_nobody_pops_is_refused},
      {Rule::kSpacesApart, namespaces_are_apart}};
  return all;
}

// Whatever a mutant throws is caught, too.
std::optional<Verdict> attempt(const Schedule& schedule, Case each, Rules rules) {
  VirtualWorld world(schedule.tempo, schedule.seed);
  try {
    if (!each(rules)) return Verdict{"case", "it is not so"};
  } catch (const std::exception& error) {
    return Verdict{"error", error.what()};
  }
  const std::string objection = hazard(world);
  if (!objection.empty()) return Verdict{"log", objection};
  return std::nullopt;
}

class PipeRule : public testing::TestWithParam<Rule> {};

TEST_P(PipeRule, IsCaught) {
  const Case each = cases().at(GetParam());
  std::optional<Verdict> caught;
  for (const Schedule& schedule : schedules()) {
    const auto core = attempt(schedule, each, Rules());
    EXPECT_FALSE(core) << schedule << ", the core itself: " << core->oracle << ": " << core->words;
    if (!caught) caught = attempt(schedule, each, Rules::without(GetParam()));
  }
  EXPECT_TRUE(caught) << name(GetParam()) << " survives";
  if (caught) {
    std::cout << name(GetParam()) << " | " << caught->oracle << " | " << caught->words << "\n";
  }
}

std::vector<Rule> pipe_rules() {
  std::vector<Rule> all;
  for (std::size_t i = kCheckpointRules; i < kRules; ++i) all.push_back(static_cast<Rule>(i));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Core, PipeRule, testing::ValuesIn(pipe_rules()), rule_test_name);

}  // namespace
}  // namespace ferry::real
