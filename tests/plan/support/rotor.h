// The optimal persistent schedule of a chain with recompute and without offload, by rotor's dynamic
// program: "Optimal checkpointing for heterogeneous chains: how to train deep neural networks with
// limited memory" (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova; arXiv 1911.13214), written
// from the paper. It shares no code with Ferry's planner.
//
//     least(i, l, m)  the time of stages i to l, forward and backward, in m units of memory besides
//                     the input of i: the minimum of
//
//       keep i:       forward and backward of i + least(i + 1, l, m - what i saves)
//       for each j:   forwards of i to j - 1, which keep only the input of j
//                     + least(j, l, m - input of j) + least(i, j - 1, m)
//
// A stage's backward reads its input and everything that it saved, including its output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry::test {

struct RotorStage {
  std::int64_t out = 0;    // units of memory; its gradient takes as many
  std::int64_t saved = 0;  // units of memory, `out` included
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
};

class Rotor {
 public:
  // `in` are the units that the first stage reads. The table covers up to `most` units of memory.
  Rotor(std::int64_t in, std::vector<RotorStage> stages, std::int64_t most)
      : stages_(std::move(stages)), most_(most), in_(in) {
    const std::size_t all = stages_.size();
    least_.assign(all * all, std::vector<std::int64_t>(static_cast<std::size_t>(most) + 1, kNever));
    for (std::size_t length = 0; length < all; ++length) {
      for (std::size_t i = 0; i + length < all; ++i) fill(i, i + length);
    }
  }

  // The least time in so many units, including the first stage's input; no value: no schedule fits.
  std::optional<std::int64_t> ns(std::int64_t units) const {
    const std::int64_t left = std::min(units - in_, most_);
    const std::int64_t found = left < 0 ? kNever : at(0, stages_.size() - 1, left);
    return found >= kNever ? std::nullopt : std::optional(found);
  }

 private:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;

  std::int64_t in(std::size_t stage) const { return stage == 0 ? in_ : stages_[stage - 1].out; }
  std::int64_t at(std::size_t i, std::size_t l, std::int64_t m) const {
    return m < 0 ? kNever : least_[i * stages_.size() + l][static_cast<std::size_t>(m)];
  }

  void fill(std::size_t i, std::size_t l) {
    const RotorStage& first = stages_[i];
    // The gradient of stage l's output is in memory throughout.
    std::int64_t needed = i == l ? in(i) + first.out + first.saved : stages_[l].out + first.out;
    for (std::size_t j = i + 1; j < l; ++j) {
      needed = std::max(needed, stages_[l].out + in(j) + stages_[j].out);
    }
    for (std::int64_t m = needed; m <= most_; ++m) {
      std::int64_t& least = least_[i * stages_.size() + l][static_cast<std::size_t>(m)];
      if (i == l) {
        least = first.forward_ns + first.backward_ns;
        continue;
      }
      least = at(i, i, m) + at(i + 1, l, m - first.saved);
      std::int64_t forwards = 0;
      for (std::size_t j = i + 1; j <= l; ++j) {
        forwards += stages_[j - 1].forward_ns;
        least = std::min(least, forwards + at(j, l, m - in(j)) + at(i, j - 1, m));
      }
    }
  }

  const std::vector<RotorStage> stages_;
  const std::int64_t most_;
  const std::int64_t in_;
  std::vector<std::vector<std::int64_t>> least_;  // by i and l, then by units of memory
};

}  // namespace ferry::test
