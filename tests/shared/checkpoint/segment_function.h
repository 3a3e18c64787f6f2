// The function of a script's segment makes some tensors on several streams, and saves them.
// When it runs again it deviates from that as was drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "tests/shared/checkpoint/drawn_segment.h"
#include "tests/shared/checkpoint/hand_world.h"

namespace ferry::test {

class SegmentFunction {
 public:
  using Tensor = sim::Tensor;
  using Saves = std::vector<std::unique_ptr<Saved<Tensor>>>;

  SegmentFunction(const DrawnSegment& drawn, HandWorld& world) : drawn_(drawn), world_(world) {}

  Tensor make_input() { return make(0, 4096); }
  // Calls `before` before it makes each tensor, and before it returns; `saved` with each that it
  // has saved.
  void run_first(const Tensor& input, Saves& saves, const std::function<void()>& before,
                 const std::function<void(const Tensor&)>& saved);
  void run_again(const Tensor& input);
  // How many tensors were made again so far, to be saved.
  std::int64_t made_again() const { return made_again_; }

 private:
  Tensor make_saved(std::size_t ordinal, const Tensor& aside, std::int64_t bytes);
  void save(std::size_t ordinal, const Tensor& tensor, Saves& into);
  bool save_deviating(std::size_t ordinal, const Tensor& tensor, const Tensor& aside, Saves& again);
  Tensor make_aside(const Tensor& input) { return make(0, 512, input); }
  void wait_for_readers();

  void wait(std::uint32_t from, std::uint32_t to);
  StreamId stream_of(std::uint32_t stream);
  Tensor make(std::uint32_t stream, std::int64_t bytes, const Tensor& of = nullptr);

  const DrawnSegment& drawn_;
  HandWorld& world_;
  std::int64_t made_again_ = 0;
};

}  // namespace ferry::test
