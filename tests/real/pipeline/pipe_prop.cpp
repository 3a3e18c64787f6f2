// Random chains with skip tensors, in random stages, under random options: a step leaves the bits
// that a loop over the micro-batches leaves, and so does a backward from forward().
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>

#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

// Without growing with the size.
int below(int bound) { return *rc::gen::resize(100, rc::gen::inRange(0, bound)); }

enum class Training { kWhole, kFrozen, kStops };  // it stops gradients of what it gets

struct Trial {
  std::vector<int> pops;           // by layer: the earlier layer whose stash it pops; -1: none
  std::vector<int> inside;         // by layer: 1 in a checkpoint, 2 in one that does not end early
  std::vector<Training> training;  // by layer
  std::vector<bool> writes;        // by layer: in place, what it stashed and returns
  std::vector<std::int64_t> balance;
  PipeOptions options;
  std::int64_t rows = 8;
  bool plain_input = true;
};

std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  out << "pops";
  for (const int pop : trial.pops) out << " " << pop;
  out << "; inside";
  for (const int inside : trial.inside) out << " " << inside;
  out << "; training";
  for (const Training each : trial.training) out << " " << static_cast<int>(each);
  out << "; writes";
  for (const bool writes : trial.writes) out << " " << writes;
  out << "; balance";
  for (const std::int64_t each : trial.balance) out << " " << each;
  return out << "; " << name(trial.options.schedule()) << " " << trial.options.stages_per_device()
             << ", microbatches " << trial.options.microbatches() << ", checkpoint "
             << name(trial.options.checkpoint()) << (trial.plain_input ? "" : ", input with grad");
}

rc::Gen<Trial> any_trial() {
  return rc::gen::exec([] {
    Trial trial;
    const int count = 1 + below(7);
    for (int i = 0; i < count; ++i) {
      int pop = i > 0 && below(2) == 0 ? below(i) : -1;
      if (std::ranges::find(trial.pops, pop) != trial.pops.end()) pop = -1;  // each once
      trial.pops.push_back(pop);
      trial.inside.push_back(std::max(0, below(5) - 2));
      trial.training.push_back(static_cast<Training>(std::max(0, below(6) - 3)));
      trial.writes.push_back(below(3) == 0);
      if (i == 0 || below(2) == 0) {
        trial.balance.push_back(1);
      } else {
        ++trial.balance.back();
      }
    }
    // So that there is something to go backward for.
    if (trial.training.back() == Training::kFrozen) trial.training.back() = Training::kWhole;
    const auto stages = static_cast<std::int64_t>(trial.balance.size());
    trial.options.schedule(kSchedules[below(3)]).checkpoint(kModes[below(3)]);
    trial.options.microbatches(std::int64_t{1} << below(4)).balance(trial.balance);
    if (trial.options.schedule() == ScheduleKind::kInterleaved) {
      const std::int64_t each = stages % 3 == 0 && below(2) == 0 ? 3 : stages % 2 == 0 ? 2 : 1;
      trial.options.stages_per_device(each);
      // Micro-batches that divide by the devices, and rows by the micro-batches.
      trial.options.microbatches(stages / each * (below(2) + 1));
    }
    trial.rows = trial.options.microbatches() * (1 + below(2));
    trial.plain_input = below(2) == 0;
    return trial;
  });
}

torch::nn::Sequential chain(const Trial& trial) {
  torch::nn::Sequential layers;
  for (std::size_t i = 0; i < trial.pops.size(); ++i) {
    std::vector<std::string> stashes;
    std::vector<std::string> pops;
    const bool stash = std::ranges::find(trial.pops, static_cast<int>(i)) != trial.pops.end();
    if (stash) stashes.push_back(std::to_string(i));
    if (trial.pops[i] >= 0) pops.push_back(std::to_string(trial.pops[i]));
    const Training training = trial.training[i];
    const bool writes = trial.writes[i];
    const auto run = [i, stash, pops, training, writes](LayerImpl& self, const Tensor& given) {
      const Tensor x = training == Training::kStops ? given.detach() : given;
      Tensor y = x * self.w - x.sum(1, true);
      if (!pops.empty()) y = y + self.take(pops.front());
      if (stash) self.put(std::to_string(i), writes ? y : y * self.w);
      return writes ? y.mul_(2) : y.clone();
    };
    const int inside = trial.inside[i];
    layers->push_back(layer(stashes, pops, [run, inside](LayerImpl& self, const Tensor& x) {
      if (inside == 0) return run(self, x);
      return ferry::checkpoint(
          CheckpointOptions().early_stop(inside == 1),
          [&self, run](const Tensor& y) { return run(self, y); }, x);
    }));
    for (Tensor& w : layers[i]->parameters()) w.set_requires_grad(training != Training::kFrozen);
  }
  return layers;
}

// Exact: integers, divided by a number that every loss is a multiple of.
Tensor loss_of(const Tensor& y, const Tensor& target) { return (y * target).sum() * 840; }

Tensor input_of(const Trial& trial) {
  return batch(trial.rows).set_requires_grad(!trial.plain_input);
}

RC_GTEST_PROP(PipeProp, AStepIsALoopOverItsMicroBatches, ()) {
  const Trial trial = *any_trial();
  auto layers = chain(trial);
  const Tensor target = batch(trial.rows) + 1;
  const Tensor expected =
      plain_step(layers, input_of(trial), target, trial.options.microbatches(), loss_of);
  const Tensors before = gradients(layers);
  Pipe pipe(layers, trial.options);
  for (int again = 0; again < 2; ++again) {
    layers->zero_grad();
    RC_ASSERT(same({pipe.step(input_of(trial), target, loss_of)}, {expected}));
    RC_ASSERT(same(gradients(layers), before));
  }
}

RC_GTEST_PROP(PipeProp, ForwardIsTheLayers, ()) {
  const Trial trial = *any_trial();
  auto layers = chain(trial);
  const Tensor target = batch(trial.rows) + 1;
  const Tensor x = input_of(trial);
  const Tensor y = layers->forward(x);
  loss_of(y, target).backward();
  const Tensors before = gradients(layers);
  const Tensor before_x = x.grad().defined() ? x.grad().clone() : Tensor();
  Pipe pipe(layers, trial.options);
  const Tensor out = pipe.forward(x);
  RC_ASSERT(same({out}, {y}));
  const Tensor loss = loss_of(out, target);
  const int backwards = below(3);
  for (int k = backwards; k > 0; --k) {
    layers->zero_grad();
    x.mutable_grad() = Tensor();
    loss.backward({}, /*retain_graph=*/k > 1);
    RC_ASSERT(same(gradients(layers), before));
    RC_ASSERT(same({x.grad()}, {before_x}));
  }
}

}  // namespace
}  // namespace ferry
