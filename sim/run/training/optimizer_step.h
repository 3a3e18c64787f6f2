// The optimizer's part of a training's step: it clips gradients, changes parameters and drops
// gradients, with the operations and temporaries of PyTorch 2.11.
//
// Sources: torch/optim/{adam,adamw,sgd,optimizer}.py, torch/nn/utils/clip_grad.py. The steps'
// counts lie on the CPU, except a fused Adam's: 4 bytes for each parameter. A parameter takes part
// if it has a gradient. Learning rates and the like are numbers on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "formats/program.h"
#include "sim/program/tape.h"
#include "sim/run/training/foreach.h"
#include "sim/run/training/grad_scaler.h"
#include "sim/run/training/host_state.h"
#include "sim/run/training/training.h"

namespace ferry::sim {

class OptimizerStep {
 public:
  // All but `training` must outlive it.
  OptimizerStep(const Training& training, const Program& program, Machine& machine,
                const KernelTimes& times, Tape& tape);

  // Does all that one step does, in a training's order. Throws OutOfMemory, and std::runtime_error
  // where PyTorch raises an error in unscaling.
  void run();
  void zero_grad();
  // After the last step: gives the host's memory back.
  void end() { host_.reset(); }
  std::size_t kept_storages() const;                   // of its state and the scaler's
  Time busy_ns() const { return foreach_.busy_ns(); }  // of all its kernels together

 private:
  // The parameters of one dtype that have a gradient, with their gradients and states: a list of
  // each.
  struct Group {
    DType dtype = DType::kF32;
    std::vector<std::size_t> globals;  // indices of the parameters
    TensorList parameters;
    TensorList gradients;
    TensorList counts;  // step counts
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
  void update(Group& group, TensorList& denominators);
  void step_on_host();
  void update_waiting();
  bool update_next(std::size_t global);
  void update_piece(std::size_t global, HostState::Piece& piece);
  void accumulated(std::size_t global);
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
  std::optional<HostState> host_;
  // By global: how often the last step accumulated its gradient; at first a guess.
  std::vector<int> accumulations_;
  std::vector<int> arrived_;          // the same, so far in this step
  std::vector<std::size_t> updated_;  // by global: how many of its pieces this step has updated
  std::deque<std::size_t> waiting_;   // parameters whose gradients wait for their update
  std::int64_t waiting_bytes_ = 0;
  std::int64_t waiting_most_ = 0;  // the limit of these bytes
};

}  // namespace ferry::sim
