// Implements optimizer_step.h. Allocations and launches come in the order of PyTorch's code.
#include "sim/run/training/optimizer_step.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace ferry::sim {
namespace {

constexpr std::int64_t kScalarBytes = 4;  // a tensor of one number

bool has_second(Optimizer optimizer) {
  return optimizer == Optimizer::kAdam || optimizer == Optimizer::kAdamW;
}

TensorList one(const TensorList& list, std::size_t i) {
  return list.empty() ? TensorList{} : TensorList{list[i]};
}

}  // namespace

OptimizerStep::OptimizerStep(const Training& training, const Program& program, Machine& machine,
                             const KernelTimes& times, Tape& tape)
    : training_(training),
      program_(program),
      tape_(tape),
      foreach_(machine, times),
      scaler_(machine, foreach_),
      states_(program.globals.size()),
      accumulations_(program.globals.size()),
      arrived_(program.globals.size()),
      updated_(program.globals.size()) {
  if (training_.state == OptimizerState::kDevice) return;
  host_.emplace(machine, foreach_, program.globals.size());
  for (const Global& global : program.globals) {
    if (!global.requires_grad || global.alias != kNoSlot) continue;
    waiting_most_ += tensor_bytes(program.types[global.type]) / kWaitingParts;
  }
  waiting_most_ = std::min(waiting_most_, kMostWaitingBytes);
  // A guess for the first step: each backward has a gradient for each parameter.
  const auto is_backward = [](const Statement& each) {
    return std::holds_alternative<Backward>(each.action);
  };
  const auto& statements = program.codes[program.main].statements;
  const auto backwards = std::count_if(statements.begin(), statements.end(), is_backward);
  accumulations_.assign(accumulations_.size(), static_cast<int>(backwards));
  tape_.after_accumulate([this](Slot global) { accumulated(global); });
}

std::vector<OptimizerStep::Group> OptimizerStep::groups() const {
  std::vector<Group> groups;  // in the order of their first parameters
  for (std::size_t i = 0; i < program_.globals.size(); ++i) {
    const Global& global = program_.globals[i];
    const Tensor& gradient = tape_.gradients()[i].tensor;
    if (!global.requires_grad || global.alias != kNoSlot || !gradient) continue;
    const DType dtype = program_.types[global.type].dtype;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [dtype](const Group& each) { return each.dtype == dtype; });
    if (group == groups.end()) {
      group = groups.insert(group, Group{});
      group->dtype = dtype;
    }
    group->globals.push_back(i);
    group->parameters.push_back(tape_.globals()[i].tensor);
    group->gradients.push_back(gradient);
    const State& state = states_[i];
    if (state.count) group->counts.push_back(state.count);
    if (state.first) group->first.push_back(state.first);
    if (state.second) group->second.push_back(state.second);
  }
  return groups;
}

std::vector<GradScaler::Gradients> OptimizerStep::gradients() const {
  std::vector<GradScaler::Gradients> lists;
  for (Group& group : groups()) lists.push_back({group.dtype, std::move(group.gradients)});
  return lists;
}

void OptimizerStep::run() {
  if (training_.optimizer == Optimizer::kNoOptimizer) return;
  if (training_.grad_scaler) return scaled_step();
  if (training_.clip_grad_norm) clip_gradients();
  step();
}

// Gradients are unscaled before they are clipped, whatever the optimizer.
void OptimizerStep::scaled_step() {
  const bool fused = training_.implementation == OptimizerImplementation::kFused;
  if (fused && !training_.clip_grad_norm) {
    scaler_.search(gradients());
  } else {
    scaler_.unscale(gradients());
    if (training_.clip_grad_norm) clip_gradients();
    if (!fused) scaler_.wait_for_what_was_found();
  }
  step();
  scaler_.update();
}

// Computes a norm for each gradient, the norm of these, and the factor for all gradients.
void OptimizerStep::clip_gradients() {
  TensorList norms, gradients;
  for (const Group& group : groups()) {
    TensorList of_group;
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
      of_group.push_back(foreach_.empty(kScalarBytes, MemoryKind::kTemporary));
    }
    foreach_.launch("_foreach_norm", {&group.gradients}, {&of_group});
    norms.insert(norms.end(), of_group.begin(), of_group.end());
    gradients.insert(gradients.end(), group.gradients.begin(), group.gradients.end());
  }
  if (gradients.empty()) return;
  const auto scalar = [this] {
    return TensorList{foreach_.empty(kScalarBytes, MemoryKind::kTemporary)};
  };
  TensorList all = {foreach_.empty(kScalarBytes * static_cast<std::int64_t>(norms.size()),
                                   MemoryKind::kTemporary)};
  foreach_.launch("stack", {&norms}, {&all});
  TensorList total = scalar();
  foreach_.launch("linalg_vector_norm", {&all}, {&total});
  TensorList factor = scalar();
  foreach_.launch("clamp", {&total}, {&factor});
  foreach_.launch("_foreach_mul_", {&gradients, &factor}, {&gradients});
}

// Makes exp_avg, then exp_avg_sq, of one parameter after the other, before any is updated.
void OptimizerStep::make_states() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Global& global = program_.globals[i];
    const bool takes_part = global.requires_grad && global.alias == kNoSlot;
    if (!takes_part || !tape_.gradients()[i].tensor || states_[i].first) continue;
    make_state(states_[i], tape_.globals()[i].tensor);
  }
}

void OptimizerStep::make_state(State& state, const Tensor& parameter) {
  const auto zeros = [this](TensorList made) {
    foreach_.launch("zeros_like", {}, {&made});
    return made.front();
  };
  const auto zeros_like = [&] {
    return zeros(foreach_.empty_like({parameter}, MemoryKind::kOptimizer));
  };
  if (training_.implementation == OptimizerImplementation::kFused) {
    state.count = zeros({foreach_.empty(kScalarBytes, MemoryKind::kOptimizer)});
  }
  state.first = zeros_like();
  state.second = zeros_like();
}

void OptimizerStep::step() {
  if (host_) return step_on_host();
  const bool adam = has_second(training_.optimizer);
  if (adam) make_states();
  TensorList denominators;  // of the group before: PyTorch's variable still refers to them
  for (Group& group : groups()) update(group, denominators);
  drop(denominators);
}

void OptimizerStep::update(Group& group, TensorList& denominators) {
  switch (training_.optimizer) {
    case Optimizer::kNoOptimizer:
      return;
    case Optimizer::kSgd:
      return sgd(group);
    case Optimizer::kMomentum:
      return momentum(group);
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      break;
  }
  switch (training_.implementation) {
    case OptimizerImplementation::kForeach:
      return adam_foreach(group, denominators);
    case OptimizerImplementation::kForLoop:
      return adam_for_loop(group);
    case OptimizerImplementation::kFused:
      return adam_fused(group);
  }
}

void OptimizerStep::adam_foreach(Group& group, TensorList& denominators) {
  const auto& [dtype, globals, parameters, gradients, counts, first, second] = group;
  if (training_.optimizer == Optimizer::kAdamW) {
    foreach_.launch("_foreach_mul_", {&parameters}, {&parameters});
  }
  foreach_.launch("_foreach_lerp_", {&first, &gradients}, {&first});
  foreach_.launch("_foreach_mul_", {&second}, {&second});
  foreach_.launch("_foreach_addcmul_", {&second, &gradients}, {&second});
  TensorList made = foreach_.empty_like(second, MemoryKind::kTemporary);
  foreach_.launch("_foreach_sqrt", {&second}, {&made});
  drop(denominators);
  denominators = std::move(made);
  foreach_.launch("_foreach_div_", {&denominators}, {&denominators});
  foreach_.launch("_foreach_add_", {&denominators}, {&denominators});
  foreach_.launch("_foreach_addcdiv_", {&parameters, &first, &denominators}, {&parameters});
}

void OptimizerStep::adam_for_loop(Group& group) {
  TensorList denominator;  // of the parameter before, until this one's is assigned
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const TensorList parameter = one(group.parameters, i);
    const TensorList gradient = one(group.gradients, i);
    const TensorList first = one(group.first, i);
    const TensorList second = one(group.second, i);
    if (training_.optimizer == Optimizer::kAdamW) {
      foreach_.launch("mul_", {&parameter}, {&parameter});
    }
    foreach_.launch("lerp_", {&first, &gradient}, {&first});
    foreach_.launch("mul_", {&second}, {&second});
    foreach_.launch("addcmul_", {&second, &gradient}, {&second});
    TensorList root = foreach_.empty_like(second, MemoryKind::kTemporary);
    foreach_.launch("sqrt", {&second}, {&root});
    TensorList divided = foreach_.empty_like(second, MemoryKind::kTemporary);
    foreach_.launch("div", {&root}, {&divided});
    drop(root);
    foreach_.launch("add_", {&divided}, {&divided});
    denominator = std::move(divided);
    foreach_.launch("addcdiv_", {&parameter, &first, &denominator}, {&parameter});
  }
}

void OptimizerStep::adam_fused(Group& group) {
  const auto& [dtype, globals, parameters, gradients, counts, first, second] = group;
  foreach_.launch("_foreach_add_", {&counts}, {&counts});
  foreach_.launch("_fused_adam_", {&parameters, &gradients, &first, &second, &counts},
                  {&parameters, &first, &second});
}

void OptimizerStep::sgd(Group& group) {
  const TensorList& parameters = group.parameters;
  foreach_.launch("_foreach_add_", {&parameters, &group.gradients}, {&parameters});
}

// A parameter's first buffer is a copy of its gradient. Later it is changed in place.
void OptimizerStep::momentum(Group& group) {
  const bool fused = training_.implementation == OptimizerImplementation::kFused;
  TensorList buffers, old, old_gradients;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    Tensor& buffer = states_[group.globals[i]].first;
    const TensorList gradient = one(group.gradients, i);
    if (buffer) {
      old.push_back(buffer);
      old_gradients.push_back(gradient.front());
    } else {
      const TensorList made = foreach_.empty_like(gradient, MemoryKind::kOptimizer);
      foreach_.launch("clone", {&gradient}, {&made});
      buffer = made.front();
    }
    buffers.push_back(buffer);
  }
  const TensorList& parameters = group.parameters;
  if (fused) {
    foreach_.launch("_fused_sgd_", {&parameters, &group.gradients, &buffers},
                    {&parameters, &buffers});
    return;
  }
  if (!old.empty()) {
    foreach_.launch("_foreach_mul_", {&old}, {&old});
    foreach_.launch("_foreach_add_", {&old, &old_gradients}, {&old});
  }
  foreach_.launch("_foreach_add_", {&parameters, &buffers}, {&parameters});
}

void OptimizerStep::zero_grad() {
  if (training_.set_to_none) return tape_.drop_gradients();
  for (const Group& group : groups()) {
    foreach_.launch("_foreach_zero_", {}, {&group.gradients});
  }
}

std::size_t OptimizerStep::kept_storages() const {
  std::size_t kept = scaler_.kept_storages();
  for (const State& state : states_) {
    kept += (state.count != nullptr) + (state.first != nullptr) + (state.second != nullptr);
  }
  return kept;
}

}  // namespace ferry::sim
