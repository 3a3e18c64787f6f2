// What the offloader must have moved and counted, told from the options and from what it was given
// to pack and asked to unpack. Its copies are those that the machine made.
//
// A pack must be kept, share a copy that the host gets already, or be sent; one is sent once, and
// whole. The forward window is a list here, by the order of packing. An unpack finds the source, or
// a target, or its own reload; any other reload was ahead of its use. The most that came back at
// once is bounded alone: a target is let go some time after the copy and before its block.
//
// What it decides, and in what order, must be what its decision log says
// (verify/oracles/way_back.h has the half of backward).
//
// What has other memory than it had when it was packed is refused, and so is what had other memory
// while it was copied.
//
// Not modelled: calls that fail, but for a host that is full.
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
  // The options outlive it.
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
  // The offloader's log.
  void decided(const Decision& decision);
  // The host had no room for what is being packed.
  void host_refused() { host_refused_ = true; }

  // That the log has, of all segments.
  std::int64_t recomputes() const { return recomputes_; }
  // What the offloader must have warned of.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // When all is over: the first thing that was not as it must be; empty: nothing.
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
  std::uint64_t run_ = 0;       // the number of the forward
  std::uint64_t pack_ = 0;      // in it
  std::uint64_t sequence_ = 0;  // of all packs
  std::optional<Copied> copied_;
  bool host_refused_ = false;  // the pack that runs
  // The reloads of the parcel that is unpacked now: where their targets lie.
  const Parcel* unpacks_ = nullptr;
  TargetRef handed_;              // to it
  std::uint64_t unpacks_at_ = 0;  // the place of the save that is unpacked
  std::vector<std::uint64_t> reloaded_now_;
  std::map<std::uint64_t, ParcelRef> alive_;  // by host address
  std::map<std::uint64_t, int> kept_;         // saves by the identity of their storage
  std::map<std::uint64_t, InWindow> window_;  // by order of packing
  std::int64_t window_bytes_ = 0;
  HostBytes on_host_;
  std::vector<Decision> must_decide_;  // in the call that runs, or the end of a task
  std::vector<Decision> decided_;
  WayBack way_back_;
  std::vector<Releases::Told> told_;
  std::int64_t recomputes_ = 0;
  int calls_ = 0;                // of the offloader, that run
  bool at_end_of_task_ = false;  // its callbacks run
  bool has_looked_ = false;      // at how full the host is
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
