// The part of optimizer_step.h for a state on the host. Each piece of a parameter is updated alone,
// with the operations that the optimizer has for one parameter.
#include <utility>

#include "sim/run/training/optimizer_step.h"

namespace ferry::sim {

void OptimizerStep::step_on_host() {
  while (!waiting_.empty()) update_waiting();
  for (std::size_t global = 0; global < states_.size(); ++global) {
    if (program_.globals[global].alias != kNoSlot || !tape_.gradients()[global].tensor) continue;
    while (update_next(global)) {
    }
  }
  host_->end_step();
  accumulations_ = std::exchange(arrived_, std::vector<int>(arrived_.size()));
  updated_.assign(updated_.size(), 0);
}

// Backward has a gradient. It is whole when as many have arrived as in the step before.
void OptimizerStep::accumulated(std::size_t global) {
  if (program_.globals[global].alias != kNoSlot) return;
  const std::int64_t bytes = tape_.globals()[global].tensor->layout.extent().bytes();
  host_->bring_ahead();
  if (training_.state == OptimizerState::kHost) return;
  if (++arrived_[global] != accumulations_[global]) return;
  waiting_.push_back(global);
  waiting_bytes_ += bytes;
  while (waiting_bytes_ > waiting_most_) update_waiting();
}

// Updates the next piece of the gradient that waits longest. The last piece drops it.
void OptimizerStep::update_waiting() {
  const std::size_t global = waiting_.front();
  const std::int64_t bytes = tape_.globals()[global].tensor->layout.extent().bytes();
  const HostState::Piece& piece = host_->pieces(global, bytes)[updated_[global]];
  waiting_bytes_ -= piece.end - piece.begin;
  update_next(global);
  if (updated_[global] < host_->pieces(global, bytes).size()) return;
  waiting_.pop_front();
  tape_.drop_gradient(static_cast<Slot>(global));
}

// Updates the next piece of a parameter. Returns false if there is none.
bool OptimizerStep::update_next(std::size_t global) {
  const std::int64_t bytes = tape_.globals()[global].tensor->layout.extent().bytes();
  std::vector<HostState::Piece>& pieces = host_->pieces(global, bytes);
  if (updated_[global] == pieces.size()) return false;
  update_piece(global, pieces[updated_[global]++]);
  return true;
}

void OptimizerStep::update_piece(std::size_t global, HostState::Piece& piece) {
  State& state = states_[global];
  const DType dtype = program_.types[program_.globals[global].type].dtype;
  Group group;
  group.dtype = dtype;
  group.globals = {global};
  group.parameters = {part_of(tape_.globals()[global].tensor, piece.begin, piece.end)};
  group.gradients = {part_of(tape_.gradients()[global].tensor, piece.begin, piece.end)};
  const bool adam =
      training_.optimizer == Optimizer::kAdam || training_.optimizer == Optimizer::kAdamW;
  const bool first_time = !piece.has_state();
  state = {piece.count, nullptr, nullptr};
  if (!first_time) {
    TensorList tensors = host_->take(piece, adam ? 2 : 1);
    state.first = std::move(tensors.front());
    if (adam) state.second = std::move(tensors.back());
  } else if (adam) {
    make_state(state, group.parameters.front());
    piece.count = state.count;
  }
  if (state.count) group.counts = {state.count};
  if (state.first) group.first = {state.first};
  if (state.second) group.second = {state.second};
  TensorList before, denominators;
  if (training_.implementation != OptimizerImplementation::kFused) {  // to undo it after an error
    before = foreach_.empty_like(group.parameters, MemoryKind::kTemporary);
    foreach_.launch("clone", {&group.parameters}, {&before});
  }
  update(group, denominators);
  drop(denominators);
  drop(before);
  TensorList made;
  if (first_time && state.first) made.push_back(std::move(state.first));
  if (first_time && state.second) made.push_back(std::move(state.second));
  state = {};
  group = {};
  if (!made.empty()) host_->store(piece, std::move(made));
  if (!first_time) host_->put_back(piece);
}

}  // namespace ferry::sim
