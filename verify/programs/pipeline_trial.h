// The trial of a pipeline, for try_pipeline.h: a random network of layers with skip tensors, its
// stages, and how it runs.
//
// Some trials are wrong on purpose: a layer declares a skip tensor that it does not have (Stray),
// or writes an input that its stage must not write (refused_stage). The pipeline must reject them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "shared/pipeline/pipeline_rules.h"
#include "shared/pipeline/stage.h"
#include "shared/pipeline/stage_policy.h"
#include "shared/seam/options.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

// kAutograd is GPipe with a backward that the caller starts. The others run backward by a schedule.
enum class PipelineKind : std::uint8_t { kAutograd, kGpipe, k1F1B, kInterleaved };

inline constexpr std::array<std::int64_t, 3> kNetSizes = {256, 2048, 16384};

struct NetLayer {
  int size = 0;                             // index into kNetSizes, for its output
  int pops = -1;                            // an earlier layer whose output it also reads; -1: none
  bool begins = false;                      // it is the first layer of a stage
  bool uses = true;                         // it reads what it pops; otherwise it drops it
  bool detached = false;                    // the tensor that it stashes has no graph
  bool frozen = false;                      // its weight has no gradient
  bool stops = false;                       // it detaches its input from the graph
  bool writes = false;                      // it writes its input in place before it reads it
  int cost = 0;                             // for stages that are cut by costs
  StagePolicy policy = StagePolicy::kKeep;  // of a stage that begins here, if it has its own
};
inline constexpr std::size_t kMostNetLayers = 9;
inline constexpr int kCosts = 8;
inline constexpr int kStagePolicies = 4;

// A wrong declaration of a layer, in addition to the skip tensors that it really stashes and pops.
enum class Stray : std::uint8_t { kNothing, kStash, kPop };

struct PipelineTrial {
  std::vector<NetLayer> layers;
  PipelineKind kind = PipelineKind::kAutograd;
  CheckpointMode mode = CheckpointMode::kNever;
  int microbatches = 2;
  int each = 1;                  // stages for each device, if interleaved
  bool backwards_order = false;  // the losses are made from the last micro-batch to the first
  int backwards = 1;             // backwards of the same graph, for kAutograd
  int steps = 1;
  bool ahead = false;  // for kAutograd: all forwards of all steps come before the first backward
  std::optional<CoreOptions> offload;  // what the stages offload; none: nothing
  bool passenger = false;  // a second value passes every stage, and every second layer reads it
  bool ids = false;        // the second value is integers, and is passed first
  // The layer whose output replaces the second value; -1: none.
  int carried = -1;
  bool random = false;    // each stage draws random numbers
  bool preserves = true;  // a recompute draws the same random numbers as forward
  bool grad = true;
  int nodes_before = 0;   // autograd nodes that each worker made before, for another model
  int balanced = 0;       // number of stages, cut by costs; 0: `begins` says where they begin
  bool policies = false;  // each stage has its own policy
  bool isolated = false;  // all skip tensors have one name, each in its own namespace
  Stray stray = Stray::kNothing;
  int stray_layer = 0;  // the layer with the wrong declaration
  int stray_of = 0;     // the layer whose stash it names; if that stashes nothing: a new name

  // Returns the number of stages on each device.
  std::size_t stages_each() const {
    const bool interleaved = kind == PipelineKind::kInterleaved;
    return interleaved ? std::min(cuts(), static_cast<std::size_t>(each)) : 1;
  }
  std::size_t stages() const { return cuts() / stages_each() * stages_each(); }
  std::size_t devices() const { return stages() / stages_each(); }
  // Returns how many micro-batches are recomputed in backward, in stages that recompute: the first
  // ones.
  std::int64_t recomputed() const {
    if (!grad || mode == CheckpointMode::kNever) return 0;
    return mode == CheckpointMode::kAlways ? microbatches : microbatches - 1;
  }
  bool goes_ahead() const { return ahead && steps > 1 && kind == PipelineKind::kAutograd; }
  std::vector<std::int64_t> costs() const;
  // Returns the first layer of each stage.
  std::vector<std::size_t> first_layers(const PipelineRules& rules = Rules()) const;
  // Returns true if the layer writes its input. The first layer never does: its input is the
  // caller's.
  bool writes(std::size_t layer) const { return layer > 0 && layers[layer].writes; }
  // Returns the first stage that writes an input that it must not write, if there is one.
  std::optional<std::size_t> refused_stage() const;
  // Removes these writes. A rejected write also ends the work of other workers, wherever that is,
  // so the run would depend on more than the order of turns.
  void drop_refused() {
    while (const auto stage = refused_stage()) layers[first_layers()[*stage]].writes = false;
  }
  // `first` is the first layer of the stage.
  StagePolicy policy(std::size_t first) const;
  // Returns true if the stage recomputes this micro-batch in each backward.
  bool runs_again(std::size_t first, std::size_t microbatch) const {
    if (static_cast<std::int64_t>(microbatch) >= recomputed()) return false;
    const StagePolicy own = policy(first);
    return !policies || own == StagePolicy::kCheckpoint || own == StagePolicy::kCheckpointOffload;
  }

 private:
  std::size_t cuts() const;
};

PipelineTrial draw_pipeline_trial(Draws& draws);

// Describes the trial in words, on one line.
std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial);

}  // namespace ferry::verify
