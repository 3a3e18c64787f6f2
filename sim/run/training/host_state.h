// The optimizer's state on the host: pieces that the core's wards bring to the device and return,
// as torch_ferry.optimizer does with its default sizes (python/torch_ferry/optimizer.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "shared/state/wards.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/run/training/foreach.h"

namespace ferry::sim {

// The simulated device, with copy streams of its own, as another user of the GPU has them.
class StateDevice : public SimDevice {
 public:
  StateDevice(Machine& machine, std::uint32_t device)
      : SimDevice(machine, device),
        lanes_{machine.transfer_stream(device, 0), machine.transfer_stream(device, 1)} {}
  StreamId lane(Lane lane) const { return lanes_[static_cast<std::size_t>(lane)]; }

 private:
  StreamId lanes_[2];
};
static_assert(Device<StateDevice>);

// With an update in backward, so many bytes of gradients may wait for their state, at most: an
// eighth of the parameters' bytes.
inline constexpr std::int64_t kMostWaitingBytes = std::int64_t{1} << 30;
inline constexpr std::int64_t kWaitingParts = 8;

// Returns the bytes [begin, end) of a tensor.
Tensor part_of(const Tensor& tensor, std::int64_t begin, std::int64_t end);

class HostState {
 public:
  // A part of a parameter, in bytes of it, and its state.
  struct Piece {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    Tensor count = nullptr;      // of a fused optimizer
    TensorList kept = {};        // a state that is too small to move
    std::optional<WardId> ward;  // none: there is no state yet, or it is kept
    bool has_state() const { return ward.has_value() || !kept.empty(); }
  };

  // All must outlive it.
  HostState(Machine& machine, Foreach& foreach, std::size_t globals);

  // Returns the pieces of the parameter, which has so many bytes.
  std::vector<Piece>& pieces(std::size_t global, std::int64_t bytes);
  // Returns the state of a piece that has one, on the device.
  TensorList take(Piece& piece, std::size_t tensors);
  // The state was updated.
  void put_back(Piece& piece);
  // Takes over a first state.
  void store(Piece& piece, TensorList&& state);
  void bring_ahead() { wards_.bring_ahead(); }
  void end_step() { wards_.end_step(); }
  std::size_t kept_storages() const;

 private:
  Machine& machine_;
  Foreach& foreach_;
  std::vector<std::vector<Piece>> pieces_;  // by global
  Wards<StateDevice> wards_;
};

}  // namespace ferry::sim
