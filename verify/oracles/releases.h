// What must be told about storages that came back from the pool of the copy stream, and when.
//
// That pool would give a block out again while a compute stream still reads it. So when a node has
// run, a record is made on each stream on which it was handed such storages. A storage that nobody
// will be handed any more goes one node later, so that the copy stream does not wait for the node
// that it feeds: the pool's stream waits for the records of those that read it. Where somebody else
// has the storage when its node has run, or it was handed out in no node, the pool is told of the
// streams instead.
//
// From the consumer's pool nothing of this is needed, and nothing is expected.
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

// A storage that came back.
struct Target {
  struct Reader {
    StreamId stream;
    int open = 0;  // times that it was handed to the node that runs
    bool done = false;
  };
  std::weak_ptr<sim::StorageImpl> storage = {};  // once it was handed out
  std::optional<StreamId> owner = {};            // of the pool
  std::vector<Reader> readers = {};
  bool kept = true;  // by its parcel
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
  // Of a graph task. (Its nodes run one after the other.)
  struct Task {
    struct Use {
      TargetRef target;
      StreamId consumer{};
    };
    bool in_node = false;
    std::vector<Use> uses = {};  // of the node that runs, or that failed
    std::vector<TargetRef> due = {};
  };

  explicit Releases(const CoreOptions& options) : needed_(needed(options)) {}
  static bool needed(const CoreOptions& options) {
    return options.reload_pool == ReloadPool::kCopyStream &&
           options.copy_streams != CopyStreams::kNone;
  }

  // `task`: null: it is handed out in none.
  void use(const TargetRef& target, StreamId consumer, Task* task);
  // Its parcel does not keep it any more; `task`: null: no task goes on that might tell it later.
  void let_go(const TargetRef& target, Task* task);
  void node_ran(Task& task);
  // Before and after what the task left is let go.
  void task_ends(Task& task);
  void task_ended(Task& task);

  // What must have been told so far.
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
