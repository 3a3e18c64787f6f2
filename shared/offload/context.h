// The state that the parts of the offloader share: the device, the options, the rules, the counts,
// and two ways to release a storage.
//
// The core drops no storage under its lock, because the deleter may be user code. It waits for no
// copy under the lock, because other threads would wait too. A Bin collects the storages that a
// call releases and the waits of its thread; these, and the log of decisions, are done after the
// lock is released.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/offload/bounds.h"
#include "shared/offload/offload_rules.h"
#include "shared/offload/parcel.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/invariant.h"
#include "shared/seam/options.h"

namespace ferry {

// A wait of the calling thread for a copy, and the reason for it.
template <Device D>
struct HostWait {
  Step step;
  typename D::Stream stream;  // the stream of the waiting thread
  typename D::Event event;
  typename D::Stream copies;           // the stream of the copy
  std::shared_ptr<Parcel<D>> evicted;  // the parcel of the source; still set if the wait fails
  typename D::Storage storage = {};    // kept until the wait is over, and protected if it failed
  bool failed = false;
};

template <Device D>
struct Bin {
  // Members are destroyed in reverse order: the storage that was waited for last is dropped first.
  std::vector<typename D::Storage> storages;
  std::vector<HostWait<D>> waits;
  void drop(typename D::Storage&& storage) { storages.push_back(std::move(storage)); }
};

template <Device D>
class Context {
 public:
  using Stream = typename D::Stream;
  using Storage = typename D::Storage;

  Context(D device_handle, CoreOptions offload_options, Rules core_rules)
      : device(std::move(device_handle)), options(std::move(offload_options)), rules(core_rules) {
    check_options(options);
  }

  D device;
  const CoreOptions options;
  Bounds bounds{options};
  const OffloadRules rules;
  OffloadStatistics statistics;

  Stream current() { return device.current_stream(); }

  // Returns the stream that copies to or from the host for work on `compute`.
  Stream copy_stream(Lane lane, const Stream& compute) {
    switch (options.copy_streams) {
      case CopyStreams::kNone:
        return compute;
      case CopyStreams::kOne:
        return device.lane(Lane::kDeviceToHost);
      case CopyStreams::kTwo:
        break;
    }
    return device.lane(lane);
  }

  // Call this before dropping a storage that `stream` may still use: its pool then waits. It never
  // fails, because it is called while another failure is handled: a storage that cannot be
  // protected is kept until the core dies, and counted.
  void protect(const Storage& storage, const Stream& stream) noexcept {
    invariant(device.exists(storage), "only a storage that is there is protected", Step::kAbandon);
    try {
      device.record_use(Step::kAbandon, storage, stream);
    } catch (...) {
      quarantine_.push_back(storage);
      ++statistics.quarantined;
    }
  }

  void log(DecisionKind kind, const Parcel<D>& parcel) {
    if (options.log) decisions.push_back({kind, parcel.run, parcel.pack, parcel.extent.bytes()});
  }
  // Reserves memory, so that logging the next decision allocates none.
  void make_room_to_log() {
    if (options.log) decisions.reserve(decisions.size() + 1);
  }
  std::vector<Decision> decisions;  // not yet logged

 private:
  std::vector<Storage> quarantine_;
};

}  // namespace ferry
