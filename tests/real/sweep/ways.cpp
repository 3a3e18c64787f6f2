#include "tests/real/sweep/ways.h"

#include <filesystem>
#include <utility>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "ferry/selective.h"

namespace ferry::sweep {
namespace {

// The samples are small: all that has bytes moves.
OffloadOptions everything() { return OffloadOptions().min_bytes(1); }

// One Offload serves all steps: its workers cost more to start than a step takes.
Way offloaded(const OffloadOptions& options) {
  return [offload = Offload(options)](const Forward& forward, const auto& then) {
    const OffloadGuard guard(offload);
    then(forward());
  };
}

Way checkpointed(const CheckpointOptions& options) {
  return
      [options](const Forward& forward, const auto& then) { then(checkpoint(options, forward)); };
}

// `inner` within an offload: what it gives to the hooks around it moves.
Way within_offload(Way inner) {
  return [outer = offloaded(everything().window(0)), inner = std::move(inner)](
             const Forward& forward, const auto& then) {
    outer([] { return Tensors(); }, [&](const Tensors&) { inner(forward, then); });
  };
}

// All that the call computes; the copies that it gets are not kept, for it may write them.
CheckpointOptions selecting(CheckpointPolicy policy) {
  return CheckpointOptions().context_fn(selective([policy](const SelectiveCall& call) {
    return call.op == "aten::clone" ? CheckpointPolicy::kMustRecompute : policy;
  }));
}

}  // namespace

Way plain() {
  return [](const Forward& forward, const auto& then) { then(forward()); };
}

std::vector<NamedWay> ways(bool all) {
  std::vector<NamedWay> ways = {
      {"offload, window 0", offloaded(everything().window(0))},
      {"checkpoint", checkpointed(CheckpointOptions())},
  };
  if (!all) return ways;
  const std::vector<SavedChoice> second = {SavedChoice::kOffload, SavedChoice::kRecompute,
                                           SavedChoice::kOffload, SavedChoice::kOffload,
                                           SavedChoice::kKeep,    SavedChoice::kOffload};
  ways.push_back({"offload, default window", offloaded(everything())});
  ways.push_back({"offload to disk",
                  offloaded(everything().window(0).disk(std::filesystem::temp_directory_path()))});
  ways.push_back(
      {"checkpoint without early stop", checkpointed(CheckpointOptions().early_stop(false))});
  ways.push_back({"checkpoint whose saves are offloaded or recomputed",
                  within_offload(checkpointed(CheckpointOptions().choices(second)))});
  ways.push_back({"checkpoint, selective: kept",
                  checkpointed(selecting(CheckpointPolicy::kMustSave)), Backwards::kOne});
  ways.push_back({"checkpoint, selective: offloaded",
                  within_offload(checkpointed(selecting(CheckpointPolicy::kMustOffload))),
                  Backwards::kOne});
  return ways;
}

}  // namespace ferry::sweep
