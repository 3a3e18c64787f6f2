// A pipeline's trial: a random network of layers with skip tensors, in stages, and how it is run.
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

// kAutograd is GPipe whose backward the caller begins. The others go backward by a schedule.
enum class PipelineKind : std::uint8_t { kAutograd, kGpipe, k1F1B, kInterleaved };

inline constexpr std::array<std::int64_t, 3> kNetSizes = {256, 2048, 16384};

struct NetLayer {
  int size = 0;           // of its output: an index into kNetSizes
  int pops = -1;          // the earlier layer whose output it reads as well; -1: none
  bool begins = false;    // it is the first layer of a stage
  bool uses = true;       // it reads what it pops; else it drops it
  bool detached = false;  // what it stashes has no graph
  bool frozen = false;    // its weight has no gradient
  bool stops = false;     // it reads what comes from the layer before without its graph
  bool writes = false;    // it writes what comes from the layer before, and reads it then
  int cost = 0;           // where stages are cut by costs
  StagePolicy policy = StagePolicy::kKeep;  // of the stage that begins with it, if each has its own
};
inline constexpr std::size_t kMostNetLayers = 9;
inline constexpr int kCosts = 8;
inline constexpr int kStagePolicies = 4;

// What a layer declares beside the skip tensors that it stashes and pops: no declaration fits that.
enum class Stray : std::uint8_t { kNothing, kStash, kPop };

struct PipelineTrial {
  std::vector<NetLayer> layers;
  PipelineKind kind = PipelineKind::kAutograd;
  CheckpointMode mode = CheckpointMode::kNever;
  int microbatches = 2;
  int each = 1;                  // stages on a device, where interleaved
  bool backwards_order = false;  // the losses are made from the last micro-batch to the first
  int backwards = 1;             // of the same graph, where autograd's
  int steps = 1;
  bool ahead = false;  // all their forwards come before the first backward, where it is autograd's
  std::optional<CoreOptions> offload;  // what the stages save
  bool passenger = false;  // a second value passes every stage, and every second layer reads it
  bool ids = false;        // it is integers, and comes first
  // The layer whose output goes on in the second value's place; -1: none.
  int carried = -1;
  bool random = false;    // each stage draws random numbers
  bool preserves = true;  // a second run draws the first one's again
  bool grad = true;
  int nodes_before = 0;   // of another model's, that each worker has made and numbered
  int balanced = 0;       // cut by costs into so many stages; 0: where layers begin them
  bool policies = false;  // each stage has its own, in place of the same for all
  bool isolated = false;  // skip tensors have one name, each in a namespace of its own
  Stray stray = Stray::kNothing;
  int stray_layer = 0;  // that declares it
  int stray_of = 0;     // the layer whose stash it names; one that stashes nothing: a new name

  // Returns how many stages each device gets; all get as many.
  std::size_t stages_each() const {
    const bool interleaved = kind == PipelineKind::kInterleaved;
    return interleaved ? std::min(cuts(), static_cast<std::size_t>(each)) : 1;
  }
  std::size_t stages() const { return cuts() / stages_each() * stages_each(); }
  std::size_t devices() const { return stages() / stages_each(); }
  // The micro-batches that run again in backward, in stages that do: the first so many.
  std::int64_t recomputed() const {
    if (!grad || mode == CheckpointMode::kNever) return 0;
    return mode == CheckpointMode::kAlways ? microbatches : microbatches - 1;
  }
  bool goes_ahead() const { return ahead && steps > 1 && kind == PipelineKind::kAutograd; }
  std::vector<std::int64_t> costs() const;
  // Of each stage.
  std::vector<std::size_t> first_layers(const PipelineRules& rules = Rules()) const;
  // Whether the layer writes its input; the first has nothing that is not the caller's.
  bool writes(std::size_t layer) const { return layer > 0 && layers[layer].writes; }
  // The first stage that writes what it is given and may not; none.
  std::optional<std::size_t> refused_stage() const;
  // Leaves these writes out. (Where one is refused the others' work ends too, wherever it is: so a
  // run depends on more than the order of turns.)
  void drop_refused() {
    while (const auto stage = refused_stage()) layers[first_layers()[*stage]].writes = false;
  }
  // `first`: the stage's first layer.
  StagePolicy policy(std::size_t first) const;
  // Whether it runs that micro-batch once more, in each backward.
  bool runs_again(std::size_t first, std::size_t microbatch) const {
    if (static_cast<std::int64_t>(microbatch) >= recomputed()) return false;
    const StagePolicy own = policy(first);
    return !policies || own == StagePolicy::kCheckpoint || own == StagePolicy::kCheckpointOffload;
  }

 private:
  std::size_t cuts() const;
};

PipelineTrial draw_pipeline_trial(Draws& draws);

// In words, on one line.
std::ostream& operator<<(std::ostream& out, const PipelineTrial& trial);

}  // namespace ferry::verify
