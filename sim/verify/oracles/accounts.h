// What the offloader must have moved and counted, told from the options and from what it was given
// to pack and asked to unpack. Its copies are those that the machine made.
//
// A pack must be kept, share a copy that the host gets already, or be sent; one is sent once, and
// whole. The forward window is a list here, by the order of packing. An unpack finds the source, or
// a target, or its own reload; any other reload was ahead of its use. What cannot be told from
// outside is bounded: a target is let go some time after the copy and before its block.
//
// Not modelled: calls that fail, and a host that is full.
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
#include "sim/run/simulation.h"

namespace ferry::verify {

// Watches one run, from its first operation on.
class Accounts final : public StreamOpConsumer, public sim::HooksWatch {
 public:
  // The options outlive it.
  explicit Accounts(const CoreOptions& options) : options_(options) {}

  std::shared_ptr<Hooks<sim::Tensor>> watch(std::shared_ptr<Hooks<sim::Tensor>> hooks) override;
  void begin_forward() override;
  void operator()(const StreamOp& op) override;

  // When all is over: the first thing that was not as it must be; empty: nothing.
  std::string complaint(const OffloadStatistics& counts) const;

 private:
  class Pair;
  class Watched;
  // A copy on the host, as long as a saved tensor needs it.
  struct Parcel {
    std::weak_ptr<sim::StorageImpl> source;
    std::uint64_t storage = 0;  // its identity
    std::uint64_t counter = 0;  // of its version
    std::uint64_t version = 0;
    Extent extent;
    std::uint64_t sequence = 0;
    std::uint64_t host = 0;  // where the copy lies
    int saves = 0;
    bool reloaded = false;
    bool ahead = false;  // reloaded, and nobody has used that yet
  };
  using ParcelRef = std::shared_ptr<Parcel>;
  enum class Fate : std::uint8_t { kKept, kShared, kSent, kSharedOrSent };
  struct Copied {
    Range from;
    Range to;
  };

  Fate fate_of(const sim::Tensor& tensor, std::uint64_t pack, ParcelRef& shares) const;
  ParcelRef send(const sim::Tensor& tensor, std::uint64_t sequence);
  void leave_window(const Parcel& parcel);
  void leave_first();
  void leave_far(std::uint64_t sequence);
  void unpacked(Parcel& parcel, bool source_there, std::uint64_t address);
  void came_in_vain(const Parcel& parcel);
  void forget(Parcel& parcel);
  void reloads(const StreamOp& op);
  std::int64_t window_bytes() const;
  void complain(std::string_view what);

  const CoreOptions& options_;
  std::uint64_t pack_ = 0;      // of this forward
  std::uint64_t sequence_ = 0;  // of all packs
  std::optional<Copied> copied_;
  // The reloads of the parcel that is unpacked now: where their targets lie.
  const Parcel* unpacks_ = nullptr;
  std::uint64_t unpacks_at_ = 0;  // the place of the save that is unpacked
  std::vector<std::uint64_t> reloaded_now_;
  std::map<std::uint64_t, ParcelRef> alive_;      // by host address
  std::map<std::uint64_t, int> kept_;             // saves by the identity of their storage
  std::map<std::uint64_t, std::int64_t> window_;  // bytes by order of packing
  std::int64_t window_bytes_ = 0;
  std::int64_t on_host_ = 0;
  std::int64_t host_peak_ = 0;                     // of this forward and what followed it
  std::int64_t host_peak_before_ = 0;              // of the one before
  std::map<std::uint64_t, std::int64_t> targets_;  // bytes by address
  std::int64_t target_bytes_ = 0;
  std::int64_t target_peak_ = 0;
  std::int64_t largest_target_ = 0;
  std::int64_t own_reloads_ = 0;
  OffloadStatistics expected_;
  std::string complaint_;
};

}  // namespace ferry::verify
