// A pipeline's trial: a random network of layers with skip tensors, in stages, and how it is run.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "shared/pipeline/stage.h"
#include "shared/seam/options.h"
#include "sim/verify/programs/trial.h"

namespace ferry::verify {

// kAutograd is GPipe whose backward the caller begins. The others go backward by a schedule.
enum class PipelineKind : std::uint8_t { kAutograd, kGpipe, k1F1B, kInterleaved };

inline constexpr std::array<std::int64_t, 3> kNetSizes = {256, 2048, 16384};

struct NetLayer {
  int size = 0;         // of its output: an index into kNetSizes
  int pops = -1;        // the earlier layer whose output it reads as well; -1: none
  bool begins = false;  // it is the first layer of a stage
  bool uses = true;     // it reads what it pops; else it drops it
};

struct PipelineTrial {
  std::vector<NetLayer> layers;
  PipelineKind kind = PipelineKind::kAutograd;
  CheckpointMode mode = CheckpointMode::kNever;
  int microbatches = 2;
  int each = 1;                  // stages on a device, where interleaved
  bool backwards_order = false;  // the losses are made from the last micro-batch to the first
  int backwards = 1;             // of the same graph, where autograd's
  int steps = 1;
  std::optional<CoreOptions> offload;  // what the stages save
  bool passenger = false;  // a second value passes every stage, and every second layer reads it
  bool grad = true;
  int nodes_before = 0;  // of another model's, that each worker has made and numbered

  // Returns how many stages each device gets; all get as many.
  std::size_t stages_each() const {
    std::size_t count = 1;
    for (std::size_t i = 1; i < layers.size(); ++i) count += layers[i].begins ? 1 : 0;
    const bool interleaved = kind == PipelineKind::kInterleaved;
    return interleaved ? std::min(count, static_cast<std::size_t>(each)) : 1;
  }
  std::vector<std::size_t> first_layers() const {
    std::vector<std::size_t> first = {0};
    for (std::size_t i = 1; i < layers.size(); ++i) {
      if (layers[i].begins) first.push_back(i);
    }
    first.resize(first.size() / stages_each() * stages_each());
    return first;
  }
  std::size_t devices() const { return first_layers().size() / stages_each(); }
};

PipelineTrial draw_pipeline_trial(Draws& draws);

// In words, on one line.
std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial);

}  // namespace ferry::verify
