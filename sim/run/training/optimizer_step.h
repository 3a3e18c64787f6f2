// The optimizer's part of a training's step: gradients are clipped, parameters changed, gradients
// dropped, as operations with the temporaries that they have in PyTorch 2.11.
//
// Sources: torch/optim/{adam,adamw,sgd,optimizer}.py, torch/nn/utils/clip_grad.py. The steps'
// counts lie on the CPU, but for a fused Adam's: 4 bytes for each parameter. A parameter takes part
// where it has a gradient. Learning rates and the like are numbers of the host.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/program.h"
#include "sim/program/tape.h"
#include "sim/run/training/foreach.h"
#include "sim/run/training/grad_scaler.h"
#include "sim/run/training/training.h"

namespace ferry::sim {

class OptimizerStep {
 public:
  // All must outlive it; of `training` nothing need live on.
  OptimizerStep(const Training& training, const Program& program, Machine& machine,
                const KernelTimes& times, Tape& tape);

  // All that one step does, in a training's order. Throws OutOfMemory, and std::runtime_error
  // where PyTorch refuses to unscale.
  void run();
  void zero_grad();
  std::size_t kept_storages() const;                   // of its state, and the scaler's
  Time busy_ns() const { return foreach_.busy_ns(); }  // of its kernels, one after the other

 private:
  // Parameters of one dtype that have a gradient, with their gradients and states: a list each.
  struct Group {
    DType dtype = DType::kF32;
    std::vector<std::size_t> globals;  // which they are
    TensorList parameters;
    TensorList gradients;
    TensorList counts;  // of steps
    TensorList first;   // exp_avg
    TensorList second;  // exp_avg_sq
  };
  // The states of a parameter; null: not made yet.
  struct State {
    Tensor count;
    Tensor first;  // exp_avg, or momentum's buffer
    Tensor second;
  };

  void clip_gradients();
  void step();
  void scaled_step();
  std::vector<GradScaler::Gradients> gradients() const;
  void make_states();
  void make_state(State& state, const Tensor& parameter);
  std::vector<Group> groups() const;
  void adam_foreach(Group& group, TensorList& denominators);
  void adam_for_loop(Group& group);
  void adam_fused(Group& group);
  void sgd(Group& group);
  void momentum(Group& group);

  const Training training_;
  const Program& program_;
  Tape& tape_;
  Foreach foreach_;
  GradScaler scaler_;
  std::vector<State> states_;  // by global
};

}  // namespace ferry::sim
