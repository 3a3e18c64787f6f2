// What the parts of the offloader share: the device, the options, the rules, the counts, and the
// two ways to let go of a storage.
//
// A storage is never dropped under the core's lock: its deleter may be anybody's code. Nor does a
// host thread wait for a copy under it: other threads would wait with it. Bin collects what a call
// lets go of and what its thread is to wait for, both for after the lock; so are the decisions for
// the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/offload/bounds.h"
#include "shared/offload/parcel.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/options.h"
#include "shared/seam/rules.h"

namespace ferry {

// A wait of the calling thread for a copy, and what it is for.
template <Device D>
struct HostWait {
  Step step;
  typename D::Stream stream;  // the thread
  typename D::Event event;
  typename D::Stream copies;           // the stream of the copy
  std::shared_ptr<Parcel<D>> evicted;  // whose source it is; stays where the wait fails
  typename D::Storage storage = {};    // goes after the wait
  bool failed = false;
};

template <Device D>
struct Bin {
  // In this order: who leaves drops what was waited for last.
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
  Rules rules;
  OffloadStatistics statistics;

  Stream current() {
    const Stream now = device.current_stream();
    if (rules.holds(Rule::kLiveStream)) return now;
    if (!first_stream_) first_stream_ = now;
    return *first_stream_;
  }

  // The stream that copies to or from the host for work on `compute`.
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

  // Before a storage is dropped that `stream` may still be using: its pool waits. Used where the
  // core is already handling a failure, so it does not fail: what cannot be protected is kept while
  // the core lives, and counted.
  void protect(const Storage& storage, const Stream& stream) noexcept {
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
  std::vector<Decision> decisions;  // not yet told

 private:
  std::optional<Stream> first_stream_;
  std::vector<Storage> quarantine_;
};

}  // namespace ferry
