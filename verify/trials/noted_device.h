// A device that only records the calls that order work. Tests of adaptors (shared/adaptors) compare
// these calls with the calls that they made. The device's storages, events and tensors are numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/device.h"

namespace ferry::verify {

struct NotedCall {
  StepKind kind = StepKind::kNone;
  Step step = Step::kUser;
  int stream = 0;
  int event = 0;  // recorded or waited for; of a host return: the number of events
  int what = 0;   // the storage, the host bytes or the tensor
  bool operator==(const NotedCall&) const = default;
};

class NotedDevice {
 public:
  using Stream = int;
  using Event = int;  // 0: never recorded
  using Storage = int;
  using WeakStorage = int;
  struct HostBuffer {
    int number = 0;
  };
  using Tensor = int;
  using Layout = int;
  struct Version {};
  using Mutex = std::mutex;
  using Metadata = int;
  struct StreamScope {
    StreamScope(const NotedDevice&, Stream) {}
  };

  // Takes the streams that compute and copy.
  NotedDevice(Stream compute, Stream out, Stream back)
      : notes_(std::make_shared<Notes>()), compute_(compute), out_(out), back_(back) {}
  const std::vector<NotedCall>& calls() const { return notes_->calls; }

  Stream current_stream() { return compute_; }
  Stream compute_stream() { return compute_; }
  Stream transfer_stream(std::uint32_t) { return back_; }
  Stream lane(Lane lane) { return lane == Lane::kDeviceToHost ? out_ : back_; }
  static bool is_host(Stream) { return false; }

  Event record(Step step, Stream stream) {
    note({StepKind::kRecord, step, stream, ++notes_->events, 0});
    return notes_->events;
  }
  void wait(Step step, Stream stream, Event event) {
    note({StepKind::kWait, step, stream, event, 0});
  }
  Storage allocate(Step step, std::int64_t bytes, Stream stream) {
    note({StepKind::kMemory, step, stream, 0, static_cast<int>(bytes)});
    return static_cast<int>(bytes);
  }
  void record_use(Step step, Storage storage, Stream stream) {
    note({StepKind::kUse, step, stream, 0, storage});
  }
  static HostBuffer allocate_host(Step, std::int64_t bytes, HostMemory) {
    return {static_cast<int>(bytes)};
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    note({StepKind::kMemory, step, 0, static_cast<int>(events.size()), host.number});
  }
  static HostUsage host_usage() { return {}; }
  void offload(Step step, Storage, std::int64_t, const HostBuffer& host, Stream stream) {
    note({StepKind::kCopy, step, stream, 0, host.number});
  }
  void reload(Step step, const HostBuffer& host, Storage, Stream stream) {
    note({StepKind::kCopy, step, stream, 0, host.number});
  }
  Tensor transfer(Step step, Tensor tensor, NotedDevice&, Stream stream) {
    note({StepKind::kCopy, step, stream, 0, tensor});
    return tensor;
  }

  static Storage storage(Tensor tensor) { return tensor; }
  static std::int64_t bytes(Storage) { return 0; }
  static std::int64_t use_count(Storage) { return 1; }
  static std::optional<Stream> owner(Storage) { return std::nullopt; }
  static std::uint64_t identity(Storage) { return 0; }
  static std::uint64_t identity(Version) { return 0; }
  static std::uint64_t address(Storage) { return 0; }
  static WeakStorage weak(Storage storage) { return storage; }
  static Storage lock(WeakStorage storage) { return storage; }
  static bool exists(Storage) { return true; }
  static bool on_device(Tensor) { return true; }
  static Layout layout(Tensor) { return 0; }
  static Extent extent(Layout) { return {}; }
  static Version version(Tensor) { return {}; }
  static std::uint64_t read(Version) { return 0; }
  static bool unique(Version) { return true; }
  static Metadata metadata(Tensor) { return 0; }
  static std::string describe(Metadata) { return ""; }
  static Tensor detach(Tensor tensor) { return tensor; }
  static Tensor restore(Storage storage, Layout, std::int64_t, Version) { return storage; }

 private:
  struct Notes {
    std::vector<NotedCall> calls;
    int events = 0;
  };
  void note(NotedCall call) noexcept { notes_->calls.push_back(call); }

  std::shared_ptr<Notes> notes_;
  Stream compute_, out_, back_;
};

static_assert(Device<NotedDevice> && PipelineDevice<NotedDevice>);

}  // namespace ferry::verify
