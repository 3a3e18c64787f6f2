// Predicts which storages are reloaded when, and when each is released, as entries of the decision
// log. It makes each prediction before the offloader acts.
//
// A storage that has left the device is reloaded when one of its saves is unpacked. It is then held
// for the saves that the graph task has not unpacked yet, within the limit on held bytes; beyond
// the limit, the storage that was packed last is released. After an unpack in a task, the earlier
// packs of the same forward are visited in reverse order, each once for each task. Those that the
// task will unpack are prefetched, within the limit on prefetched bytes. At the end of a task,
// everything that was prefetched or held for it is released. At the end of a nested task, storages
// that were packed before it began are left to the task around it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/options.h"
#include "verify/oracles/on_host.h"
#include "verify/oracles/releases.h"

namespace ferry::verify {

class WayBack {
 public:
  // Adds the expected decisions to the end of `decisions`. All three must outlive it.
  WayBack(const CoreOptions& options, const HostBytes& host, std::vector<Decision>& decisions)
      : options_(options), host_(host), decisions_(decisions), releases_(options) {}

  // Graph tasks nest: the one that began last is the one that runs.
  void task_began() { tasks_.push_back({.id = next_task_++}); }
  // All nodes of the task have run, and it releases its storages. Called once, before task_ended.
  void let_go_of_task();
  void task_ended() { tasks_.pop_back(); }
  void node_begins() { tasks_.back().ends.in_node = true; }
  // Called before the callbacks at the end of a node.
  void node_ran() { releases_.node_ran(tasks_.back().ends); }

  void sent(const std::shared_ptr<Parcel>& parcel);
  // `next` is the number of the next pack, `consumer` the current stream. Returns the target that
  // the unpack must return, or null for the source.
  TargetRef unpacks(WatchedSave& save, std::uint64_t next, StreamId consumer);
  // The unpack of a save will fail, but it makes its task known.
  void refuses(std::uint64_t next) { know(next); }
  // Returns true if an unpack starts a prefetch. Then sources that were packed long before the save
  // leave the window, and look_ahead must be called.
  bool looks_ahead(std::uint64_t next);
  void look_ahead(const WatchedSave& save);
  void drops(WatchedSave& save);
  // The calls for targets that must have been made since the list was last taken.
  std::vector<Releases::Told>& told() { return releases_.told(); }

 private:
  struct Task {
    std::uint64_t id = 0;
    bool known = false;  // to the offloader
    bool ended = false;
    std::uint64_t began = 0;  // number of the next pack when the task became known
    std::map<std::uint64_t, std::uint64_t> looked = {};  // by forward: the last visited pack
    std::vector<std::weak_ptr<Parcel>> left = {};        // prefetched or held for the task
    Releases::Task ends = {};
  };

  Task* task() { return tasks_.empty() ? nullptr : &tasks_.back(); }
  Task* know(std::uint64_t next);
  static std::size_t pending(const Parcel& parcel, std::optional<std::uint64_t> task);
  void hold(const std::shared_ptr<Parcel>& parcel, Task& task);
  void let_go_beyond_bounds(Task& task);
  bool is_wanted(const Parcel& parcel, const Task& task) const;
  std::int64_t bytes_back(Parcel::Back why) const;
  // `task` is a task that still runs; null: there is none.
  void let_go(Parcel& parcel, Task* task);
  void expect(DecisionKind kind, const Parcel& parcel);

  const CoreOptions& options_;
  const HostBytes& host_;
  std::vector<Decision>& decisions_;
  Releases releases_;
  std::uint64_t next_task_ = 0;
  std::vector<Task> tasks_;
  std::map<std::uint64_t, std::shared_ptr<Parcel>> parcels_;  // alive, by order of packing
};

}  // namespace ferry::verify
