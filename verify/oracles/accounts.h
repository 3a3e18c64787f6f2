// A model of the offloader. From the options, and from what was packed and unpacked, it works out
// which tensors must move, what the statistics must be, and what the decision log must say. It
// compares this with the copies that the simulated machine made, with the statistics and with the
// log. way_back.h has the part of the model for backward. try_core.h and try_saves.h watch their
// runs with it.
//
// The rules for a pack: the tensor stays on the device, shares a copy that is on the host already,
// or is sent, once and in one copy. The forward window is a list in packing order. An unpack finds
// the source, or a reloaded tensor, or reloads it; all other reloads are prefetches. The peak of
// reloaded bytes is only checked against bounds, because the core stops counting a target at some
// time between its copy and the free of its block.
//
// An unpack must fail if the storage's memory was replaced after the pack or during the copy.
//
// Not modelled: failing calls, except when the host is full.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/seam/options.h"
#include "shared/seam/statistics.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/tensor.h"
#include "sim/program/graph_engine.h"
#include "sim/run/training/options.h"
#include "sim/run/training/result.h"
#include "verify/oracles/on_host.h"
#include "verify/oracles/way_back.h"

namespace ferry::verify {

// Watches one run, from its first operation on.
class Accounts final : public StreamOpConsumer, public sim::HooksWatch, public sim::TaskWatch {
 public:
  // The options must outlive it.
  explicit Accounts(const CoreOptions& options)
      : options_(options), way_back_(options, on_host_, must_decide_) {}

  std::shared_ptr<Hooks<sim::Tensor>> watch(std::shared_ptr<Hooks<sim::Tensor>> hooks) override;
  void begin_forward() override;
  void operator()(const StreamOp& op) override;
  void task_began() override { way_back_.task_began(); }
  void task_ends() noexcept override { at_end_of_task_ = true; }
  void task_ended() noexcept override;
  void node_begins() override;
  void node_ran() override { way_back_.node_ran(); }
  // Called for each entry of the offloader's decision log.
  void decided(const Decision& decision);
  // Called if the host has no room for the tensor that is being packed.
  void host_refused() { host_refused_ = true; }

  // Recomputes of all segments, as in the decision log.
  std::int64_t recomputes() const { return recomputes_; }
  // The warnings that the offloader must have given.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Called at the end of the run. Returns the first difference that was found, or an empty text.
  std::string complaint(const OffloadStatistics& counts) const;

 private:
  class Pair;
  class Watched;
  class Call;
  using ParcelRef = std::shared_ptr<Parcel>;
  enum class Fate : std::uint8_t { kKept, kShared, kSent };
  struct Copied {
    Range from;
    Range to;
  };
  struct InWindow {
    std::int64_t bytes = 0;
    ParcelRef parcel;
  };

  Fate fate_of(const sim::Tensor& tensor, std::uint64_t pack, ParcelRef& shares) const;
  ParcelRef copy_of(const sim::Tensor& tensor, const Extent& extent) const;
  ParcelRef send(const sim::Tensor& tensor, const WatchedSave& save, std::uint64_t pack);
  void unpacking(WatchedSave& save, const sim::Machine& machine);
  std::int64_t room_for(const sim::StorageImpl& storage) const;
  void look_at_leaving(const sim::Tensor& tensor) const;
  void leave_window(const Parcel& parcel);
  void leave_first();
  void leave_far(std::uint64_t sequence);
  void unpacked(Parcel& parcel, bool source_there, std::uint64_t address);
  void came_in_vain(const Parcel& parcel);
  void forget(Parcel& parcel);
  void reloads(const StreamOp& op);
  void may_warn(const sim::Machine& machine);
  void may_let_go();
  void compare_decisions();
  void compare_told();
  void complain(std::string_view what);

  const CoreOptions& options_;
  std::uint64_t run_ = 0;       // number of the current forward
  std::uint64_t pack_ = 0;      // number of the next pack in this forward
  std::uint64_t sequence_ = 0;  // number of the next pack in the run
  std::optional<Copied> copied_;
  bool host_refused_ = false;  // during the current pack
  // The parcel that is being unpacked; reloaded_now_ has the addresses of its reloads.
  const Parcel* unpacks_ = nullptr;
  TargetRef handed_;              // the target that the unpack must return
  std::uint64_t unpacks_at_ = 0;  // the sequence number of the save that is being unpacked
  std::vector<std::uint64_t> reloaded_now_;
  std::map<std::uint64_t, ParcelRef> alive_;  // by host address
  std::map<std::uint64_t, int> kept_;         // number of kept saves by identity of their storage
  std::map<std::uint64_t, InWindow> window_;  // by sequence number of the pack
  std::int64_t window_bytes_ = 0;
  HostBytes on_host_;
  std::vector<Decision> must_decide_;  // expected in the current call or at the end of the task
  std::vector<Decision> decided_;
  WayBack way_back_;
  std::vector<Releases::Told> told_;
  std::int64_t recomputes_ = 0;
  int calls_ = 0;                // nested calls of the offloader that are running
  bool at_end_of_task_ = false;  // callbacks at the end of a task are running
  bool has_looked_ = false;      // the check for a full host was made
  std::vector<std::string> warnings_;
  std::map<std::uint64_t, std::int64_t> targets_;  // bytes by address
  std::int64_t target_bytes_ = 0;
  std::int64_t target_peak_ = 0;
  std::int64_t largest_target_ = 0;
  std::int64_t own_reloads_ = 0;
  OffloadStatistics expected_;
  std::string complaint_;
};

}  // namespace ferry::verify
