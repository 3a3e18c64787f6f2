// An offloader on the CPU device under the eyes of its program: each save remembers what the
// program knows of it, and what the offloader then does is judged.
//
//   error   an exception that should not be, or none where one should: written since the save
//   moves   a copy of what should stay or is on the host already, a reload of what could be held
//   leak    something is left
//   bound   the statistics are beyond what the options allow
//
// The first objection counts. Bytes are judged where they are read (tests/real/cpu/strips.h).
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "tests/real/cpu/strips.h"
#include "tests/real/script.h"
#include "tests/real/verdict.h"

namespace ferry::real {

// What the program knows of a storage that it saves.
struct Source {
  int home = 0;  // the stream that writes it, and whose pool it is of
  std::shared_ptr<int> writes = std::make_shared<int>(0);  // since it was made
  // The task that had one of the saves that share a parcel reloaded.
  std::shared_ptr<GraphTaskId> task = std::make_shared<GraphTaskId>(GraphTaskId::kNone);
  bool stays = false;   // must never be copied
  bool sparse = false;  // and is not looked at
};

struct Save {
  std::unique_ptr<Saved<at::Tensor>> saved;
  Strip strip;
  Source source;
  int stream = 0;  // that saved it
  int writes = 0;  // that there had been
  bool moved = false;
  GraphTaskId unpacked_in = GraphTaskId::kNone;
};

class Judged {
 public:
  // The world outlives it.
  Judged(StripWorld& world, const CoreOptions& options, Rules rules,
         std::optional<Mutation> mutation)
      : world_(world),
        options_(options),
        offloader_(Bent<CpuDevice>(world.device(), mutation), ScriptAutograd(script_), options,
                   rules) {}

  Script& script() { return script_; }
  void begin_run() { offloader_.begin_run(); }
  void exempt(const at::Tensor& tensor) { offloader_.exempt(tensor); }
  OffloadStatistics statistics() const { return offloader_.statistics(); }

  // Saves on the current stream. `again`: its bytes are saved already.
  Save pack(const at::Tensor& tensor, const Strip& strip, const Source& from, bool again = false) {
    const OffloadStatistics before = statistics();
    auto saved = offloader_.hooks()->pack(tensor);
    const OffloadStatistics now = statistics();
    const bool copied = now.offloaded_count > before.offloaded_count;
    if (copied && from.stays) object("moves", "what should stay was copied");
    if (copied && again) object("moves", "the same bytes were copied twice");
    most_bytes_ = std::max(most_bytes_, now.offloaded_bytes - before.offloaded_bytes);
    if (!from.sparse) {
      largest_bytes_ = std::max(largest_bytes_, TorchTensors::bytes(tensor.storage()));
    }
    return {std::move(saved), strip, from, world_.current(), *from.writes, now.kept == before.kept};
  }

  // None where it holds no strip, or none any more.
  std::optional<at::Tensor> unpack(Save& save) {
    const OffloadStatistics before = statistics();
    const bool rewritten = save.writes != *save.source.writes;
    std::optional<at::Tensor> tensor;
    try {
      tensor = save.saved->unpack();
    } catch (const ModifiedInPlace&) {
      if (!rewritten) throw;
      return std::nullopt;
    }
    if (rewritten) object("error", "what was written since its save was unpacked");
    if (save.source.sparse && !tensor->is_sparse()) object("values", "a sparse tensor changed");
    if (rewritten || save.source.sparse) return std::nullopt;
    judge_hold(save, before);
    return tensor;
  }

  void object(const char* oracle, const std::string& words) {
    if (!objection_) objection_ = Verdict{oracle, words};
  }
  void nested(std::int64_t depth) { deepest_ = std::max(deepest_, depth); }

  // Once the device is finished. `stay_bytes`: what the program still has on it.
  std::optional<Verdict> verdict(std::int64_t stay_bytes) {
    if (world_.wrong() > 0) return Verdict{"values", "wrong bytes were read"};
    if (objection_) return objection_;
    if (const char* what = left(stay_bytes)) return Verdict{"leak", what};
    if (const char* what = beyond_bounds()) return Verdict{"bound", what};
    return std::nullopt;
  }

 private:
  // What a task reloaded serves the other saves that it unpacks.
  void judge_hold(Save& save, const OffloadStatistics& before) {
    const OffloadStatistics now = statistics();
    if (!save.moved || now.stash_hits > before.stash_hits) return;
    const GraphTaskId task = ScriptAutograd(script_).graph_task();
    const GraphTaskId latest = std::exchange(*save.source.task, task);
    const GraphTaskId mine = std::exchange(save.unpacked_in, task);
    if (task == GraphTaskId::kNone || latest != task || mine == task) return;
    if (options_.hold_bytes == kUnlimited && now.target_hits == before.target_hits) {
      object("moves", "a storage was reloaded twice that could have been held");
    }
  }

  const char* left(std::int64_t stay_bytes) {
    const CpuDeviceUsage usage = world_.device().usage();
    if (!offloader_.empty()) return "the core holds something";
    if (usage.pool_bytes != stay_bytes) return "device memory";
    if (usage.host_bytes != 0) return "host memory";
    if (usage.deferred_blocks != 0) return "a deferred block";
    if (usage.tasks != 0) return "a task";
    return statistics().quarantined != 0 ? "quarantined blocks" : nullptr;
  }

  const char* beyond_bounds() const {
    const OffloadStatistics counts = statistics();
    if (counts.forward_stash_peak_bytes > std::max(options_.window_bytes, largest_bytes_)) {
      return "the window holds more bytes than it may";
    }
    if (options_.window_tensors != kUnlimited &&
        counts.forward_stash_peak_bytes > options_.window_tensors * largest_bytes_) {
      return "the window holds more packs than it may";
    }
    // Beyond what is prefetched and held: what is at hand, and in the copy stream's pool that of
    // each task's open node and of the one before, twice where a save was unpacked twice.
    const std::int64_t at_hand =
        options_.reload_pool == ReloadPool::kConsumer ? 2 : 4 * (deepest_ + 1);
    if (options_.hold_bytes != kUnlimited &&
        counts.backward_stash_peak_bytes >
            options_.prefetch_bytes + options_.hold_bytes + at_hand * most_bytes_) {
      return "more is prefetched or held than may be";
    }
    return nullptr;
  }

  StripWorld& world_;
  const CoreOptions options_;
  Script script_;
  Offloader<Bent<CpuDevice>, ScriptAutograd> offloader_;
  std::int64_t largest_bytes_ = 0;  // of the storages that were saved
  std::int64_t most_bytes_ = 0;     // that travelled at once
  std::int64_t deepest_ = 0;        // of nested backwards
  std::optional<Verdict> objection_;
};

}  // namespace ferry::real
