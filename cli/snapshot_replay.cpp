#include "cli/snapshot_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "formats/error.h"
#include "formats/memory_snapshot.h"
#include "sim/gpu/snapshot_replay.h"

namespace ferry::cli {
namespace {

std::string to_text(const std::string& path, const MemorySnapshot& snapshot,
                    const sim::SnapshotReplay& replay) {
  if (!replay.difference) {
    return fmt::format("the same: {} entries with {} allocations, and {} segments at the end\n",
                       replay.entries, replay.allocations, replay.segments);
  }
  const sim::ReplayDifference& difference = *replay.difference;
  const std::string place =
      difference.entry ? fmt::format("entry {}", *difference.entry) : "the segments at the end";
  std::string text = fmt::format("{}: {}: device {}, {}\n> real       {}\n> simulated  {}\n",
                                 replay.start_unknown ? "not known" : "different", path,
                                 difference.device, place, difference.real, difference.simulated);
  if (replay.start_unknown) {
    text +=
        "the history begins in the middle and does not give the size of every earlier block: the "
        "start is not known, so this may not be a real difference\n";
  }
  if (snapshot.conf.garbage_collection_threshold > 0) {
    text +=
        "garbage_collection_threshold is set: a snapshot does not say of how much memory it is a "
        "part, so nothing was collected in the simulation\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const sim::SnapshotReplay& replay) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"kind", "snapshot"},
                                 {"same", !replay.difference},
                                 {"start_known", !replay.start_unknown},
                                 {"entries", replay.entries},
                                 {"allocations", replay.allocations},
                                 {"segments", replay.segments},
                                 {"difference", nullptr}};
  if (!replay.difference) return json;
  if (replay.start_unknown) json["same"] = nullptr;
  json["difference"] = {{"device", replay.difference->device},
                        {"entry", nullptr},
                        {"real", replay.difference->real},
                        {"simulated", replay.difference->simulated}};
  if (replay.difference->entry) json["difference"]["entry"] = *replay.difference->entry;
  return json;
}

// A snapshot does not say which PyTorch wrote it, so the allocators of several versions are tried.
// Returns the first replay without a difference, else one whose start is not known, else that of
// the newest version. (For 2.12, the start of a history that begins in the middle is never known:
// counting that would hide every difference.)
sim::SnapshotReplay replay_as_any_torch(MemorySnapshot& snapshot, const std::string& path) {
  ProgressLine progress;
  std::optional<sim::SnapshotReplay> told;
  for (const EqualBlocks equal :
       {EqualBlocks::kOldestSegment, EqualBlocks::kLowestAddress, EqualBlocks::kOldestBlock}) {
    snapshot.conf.equal_blocks = equal;
    sim::SnapshotReplay replay = sim::replay_snapshot(
        snapshot, path,
        [&](std::size_t done, std::size_t all) { progress.show(done, all, "entries"); });
    progress.clear();
    if (!replay.difference) return replay;
    const bool better = told && replay.start_unknown && equal != EqualBlocks::kOldestBlock;
    if (!told || (better && !told->start_unknown)) told = std::move(replay);
  }
  return *told;
}

}  // namespace

bool is_snapshot(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return in.get() == 0x80;
}

ExitCode replay_snapshot(const std::string& path, bool json) {
  MemorySnapshot snapshot = read_memory_snapshot(path);
  const bool any = std::any_of(snapshot.traces.begin(), snapshot.traces.end(),
                               [](const auto& trace) { return !trace.empty(); });
  if (!any) {
    throw InputError(path, 0,
                     "expected a snapshot with a history: call "
                     "torch.cuda.memory._record_memory_history() before the training");
  }
  const sim::SnapshotReplay replay = replay_as_any_torch(snapshot, path);
  if (json) {
    print_json(to_json(replay));
  } else {
    print_text(to_text(path, snapshot, replay));
  }
  if (replay.start_unknown) return kUsage;
  return replay.difference ? kDiffers : kOk;
}

}  // namespace ferry::cli
