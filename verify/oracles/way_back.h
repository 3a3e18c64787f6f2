// Which storages come back when, and when each is let go: worked out before the offloader is asked,
// in the words of its decision log.
//
// What is gone comes back when a save of it is unpacked. It stays for the saves of it that the
// graph task has yet to unpack, as far as the bound on held bytes goes: beyond it goes what was
// packed last. After an unpack in a task, what was packed before it in the same run is looked at,
// backwards, by each task once: what the task will unpack comes, up to the bound on bytes that came
// ahead. The end of a task lets go all that came or was held for it; of a nested one, what was
// packed before it began is left to the task around it.
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
  // What must be decided is put at the end of `decisions`. All three outlive it.
  WayBack(const CoreOptions& options, const HostBytes& host, std::vector<Decision>& decisions)
      : options_(options), host_(host), decisions_(decisions), releases_(options) {}

  // Of graph tasks: the one that began last is the one that runs.
  void task_began() { tasks_.push_back({.id = next_task_++}); }
  // All its nodes have run: it lets go. Once, before task_ended.
  void let_go_of_task();
  void task_ended() { tasks_.pop_back(); }
  void node_begins() { tasks_.back().ends.in_node = true; }
  // Before what is to be called at its end.
  void node_ran() { releases_.node_ran(tasks_.back().ends); }

  void sent(const std::shared_ptr<Parcel>& parcel);
  // `next`: the number of the pack that comes next; `consumer`: the stream that is current. Returns
  // what it is handed; null: the source.
  TargetRef unpacks(WatchedSave& save, std::uint64_t next, StreamId consumer);
  // The save will be refused: its task is known all the same.
  void refuses(std::uint64_t next) { know(next); }
  // Whether an unpack looks ahead; then what is packed long before the save leaves the window, and
  // `look_ahead` is to be called.
  bool looks_ahead(std::uint64_t next);
  void look_ahead(const WatchedSave& save);
  void drops(WatchedSave& save);
  // What must have been told of targets so far.
  std::vector<Releases::Told>& told() { return releases_.told(); }

 private:
  struct Task {
    std::uint64_t id = 0;
    bool known = false;  // to the offloader
    bool ended = false;
    std::uint64_t began = 0;  // the number of the pack that came next when it was first known
    std::map<std::uint64_t, std::uint64_t> looked = {};  // by run: down to which place
    std::vector<std::weak_ptr<Parcel>> left = {};        // came ahead, or was held
    Releases::Task ends = {};
  };

  Task* task() { return tasks_.empty() ? nullptr : &tasks_.back(); }
  Task* know(std::uint64_t next);
  static std::size_t pending(const Parcel& parcel, std::optional<std::uint64_t> task);
  void hold(const std::shared_ptr<Parcel>& parcel, Task& task);
  void let_go_beyond_bounds(Task& task);
  bool is_wanted(const Parcel& parcel, const Task& task) const;
  std::int64_t bytes_back(Parcel::Back why) const;
  // `task`: the one that goes on; null: none.
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
