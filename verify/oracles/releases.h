// Works out which calls the offloader must make for reloaded storages, and when, if they come from
// the pool of the copy stream.
//
// That pool may hand out a block again while a compute stream still reads it. So after each node,
// an event is recorded on each stream on which the node got such storages. A storage that is no
// longer needed is released one node later: the pool's stream waits for the events of its readers.
// Because of the delay, the copy stream does not wait for the node that it serves. If somebody else
// still has the storage when its node has run, or if it was handed out outside of any node, the
// pool is told which streams use it (record_use).
//
// Storages from the consumer's pool need no such calls.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/options.h"
#include "shared/seam/step.h"
#include "sim/gpu/tensor.h"

namespace ferry::verify {

// A reloaded storage.
struct Target {
  struct Reader {
    StreamId stream;
    int open = 0;  // how often the running node got it
    bool done = false;
  };
  std::weak_ptr<sim::StorageImpl> storage = {};  // set when it is handed out
  std::optional<StreamId> owner = {};            // stream of its pool
  std::vector<Reader> readers = {};
  bool kept = true;  // its parcel keeps it
  bool escaped = false;

  bool in_use() const;
};
using TargetRef = std::shared_ptr<Target>;

class Releases {
 public:
  struct Told {
    Step step{};
    StreamId stream{};
    auto operator<=>(const Told&) const = default;
  };
  // The uses in a graph task. Its nodes run one after the other.
  struct Task {
    struct Use {
      TargetRef target;
      StreamId consumer{};
    };
    bool in_node = false;
    std::vector<Use> uses = {};  // of the running node, or of one that failed
    std::vector<TargetRef> due = {};
  };

  explicit Releases(const CoreOptions& options) : needed_(needed(options)) {}
  static bool needed(const CoreOptions& options) {
    return options.reload_pool == ReloadPool::kCopyStream &&
           options.copy_streams != CopyStreams::kNone;
  }

  // A storage is handed out. `task` is null if this happens outside of any task.
  void use(const TargetRef& target, StreamId consumer, Task* task);
  // Its parcel no longer keeps the storage. `task` is null if no running task can release it later.
  void let_go(const TargetRef& target, Task* task);
  void node_ran(Task& task);
  // Called before and after the offloader releases what the task left.
  void task_ends(Task& task);
  void task_ended(Task& task);

  // The calls that must have been made since the list was last taken.
  std::vector<Told>& told() { return told_; }

 private:
  void record(Task& task);
  void close(Task& task);
  void finish(const TargetRef& target, Task* task);
  void release(const Target& target);

  const bool needed_;
  std::vector<Told> told_;
};

}  // namespace ferry::verify
