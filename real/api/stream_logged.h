// A device that writes its calls to a stream log, with the names of their steps.
//
//   call                     lines
//   record, wait             record, wait; each has an event of its own, gone with its last handle
//   offload, reload          copy
//   allocate                 alloc, written by the source that watches the allocator
//   record_use               record_use
//   allocate_host            alloc of pool `host`
//   release_host             a record_use until each event, then free: the host tier waits
//
// A call that throws writes nothing. A host buffer that is destroyed without release_host is freed
// after all work that the lanes have so far, and is logged so.
//
// It wraps the real device directly, so faults that an adaptor above it injects are logged.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "real/api/stream_log.h"
#include "shared/adaptors/forward.h"

namespace ferry::real {

template <Device D>
class StreamLogged : public Forward<D> {
  struct State;

 public:
  using Base = Forward<D>;
  using typename Base::Storage;
  using typename Base::Stream;

  class Event {
   public:
    Event() = default;

   private:
    friend class StreamLogged;
    struct Recorded {
      Recorded(std::shared_ptr<StreamLog> to, Stream on)
          : log(std::move(to)), stream(std::move(on)), id(log->new_event()) {}
      Recorded(const Recorded&) = delete;
      Recorded& operator=(const Recorded&) = delete;
      ~Recorded() {
        StreamOp op;
        op.kind = StreamOpKind::kEventDestroy;
        op.event = id;
        log->write(op);
      }
      const std::shared_ptr<StreamLog> log;
      const Stream stream;
      const EventId id;
    };
    typename D::Event event_{};
    std::shared_ptr<const Recorded> recorded_;
  };

  class HostBuffer {
   public:
    HostBuffer() = default;
    HostBuffer(HostBuffer&& other) noexcept
        : owner_(std::move(other.owner_)),
          range_(other.range_),
          buffer_(std::move(other.buffer_)) {}
    HostBuffer& operator=(HostBuffer&& other) noexcept {
      HostBuffer moved(std::move(other));
      std::swap(owner_, moved.owner_);
      std::swap(range_, moved.range_);
      std::swap(buffer_, moved.buffer_);
      return *this;
    }
    ~HostBuffer() {
      if (!owner_) return;
      for (const Stream& lane : owner_->lanes) {
        owner_->host_used(owner_->op(StreamOpKind::kRecordUse, Step::kUser, lane), range_);
      }
      owner_->host_freed(Step::kUser, range_);
    }

   private:
    friend class StreamLogged;
    std::shared_ptr<State> owner_;  // null: no bytes, or already released
    Range range_;
    typename D::HostBuffer buffer_;
  };

  StreamLogged(D upstream, std::shared_ptr<StreamLog> log)
      : Base(std::move(upstream)), state_(std::make_shared<State>(std::move(log))) {
    state_->add_lane(Base::lane(Lane::kDeviceToHost), "d2h");
    state_->add_lane(Base::lane(Lane::kHostToDevice), "h2d");
  }

  Event record(Step step, const Stream& stream) {
    Event event;
    event.event_ = Base::record(step, stream);
    event.recorded_ = std::make_shared<typename Event::Recorded>(state_->log, stream);
    StreamOp op = state_->op(StreamOpKind::kRecord, step, stream);
    op.event = event.recorded_->id;
    state_->log->write(op);
    return event;
  }
  void wait(Step step, const Stream& stream, const Event& event) {
    Base::wait(step, stream, event.event_);
    StreamOp op = state_->op(StreamOpKind::kWait, step, stream);
    if (event.recorded_) op.event = event.recorded_->id;
    state_->log->write(op);
  }

  Storage allocate(Step step, std::int64_t bytes, const Stream& stream) {
    std::optional<StreamId> pool;
    if (has_own_pool(stream)) pool = state_->log->stream(stream_key(stream));
    const StreamLog::Allocating allocating(step, pool);
    return Base::allocate(step, bytes, stream);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    Base::record_use(step, storage, stream);
    if (this->bytes(storage) == 0) return;
    StreamOp op = state_->op(StreamOpKind::kRecordUse, step, stream);
    op.range = range(storage, 0, this->bytes(storage));
    state_->log->write(op);
  }

  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    HostBuffer host;
    host.buffer_ = Base::upstream().allocate_host(step, bytes, kind);
    host.range_ = {host.buffer_.address(), static_cast<std::uint64_t>(bytes)};
    if (bytes > 0) state_->host_allocated(step, host.range_);
    host.owner_ = state_;
    return host;
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    HostBuffer taken = std::move(host);
    if (!taken.owner_) return;
    try {
      std::vector<typename D::Event> upstream;
      for (const Event& event : events) upstream.push_back(event.event_);
      const std::shared_ptr<State> owner = std::exchange(taken.owner_, nullptr);
      for (const Event& event : events) {
        if (!event.recorded_) continue;
        StreamOp op = owner->op(StreamOpKind::kRecordUse, step, event.recorded_->stream);
        op.event = event.recorded_->id;
        op.until_event = true;
        owner->host_used(op, taken.range_);
      }
      owner->host_freed(step, taken.range_);
      Base::upstream().release_host(step, std::move(taken.buffer_), upstream);
    } catch (...) {  // no memory for the lists: the buffer frees itself
    }
  }

  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    Base::upstream().offload(step, storage, begin, host.buffer_, stream);
    state_->copied(step, CopyKind::kDeviceToHost,
                   range(storage, begin, static_cast<std::int64_t>(host.range_.bytes)), host.range_,
                   stream);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    Base::upstream().reload(step, host.buffer_, storage, stream);
    state_->copied(step, CopyKind::kHostToDevice, host.range_,
                   range(storage, 0, static_cast<std::int64_t>(host.range_.bytes)), stream);
  }

  void finish() noexcept requires requires(D device) { device.finish(); }
  { Base::upstream().finish(); }
  void flush_spans() requires requires(D device) { device.flush_spans(); }
  { Base::upstream().flush_spans(); }

 private:
  struct State {
    explicit State(std::shared_ptr<StreamLog> to) : log(std::move(to)) {}

    void add_lane(const Stream& lane, const char* name) {
      log->call(stream_key(lane), name);
      lanes.push_back(lane);
    }
    StreamOp op(StreamOpKind kind, Step step, const Stream& stream) const {
      StreamOp op;
      op.kind = kind;
      op.step = step;
      op.stream = log->stream(stream_key(stream));
      return op;
    }
    void copied(Step step, CopyKind kind, Range from, Range to, const Stream& stream) const {
      if (from.bytes == 0) return;
      StreamOp op = this->op(StreamOpKind::kCopy, step, stream);
      op.copy = kind;
      op.reads = {&from, 1};
      op.writes = {&to, 1};
      log->write(op);
    }
    // Host bytes belong to no stream.
    void host_allocated(Step step, Range range) const {
      StreamOp op = this->op(StreamOpKind::kAlloc, step, lanes.front());
      op.pool = PoolKind::kHost;
      op.range = range;
      log->write(op);
    }
    void host_used(StreamOp op, Range range) const {
      if (range.bytes == 0) return;
      op.range = range;
      log->write(op);
    }
    void host_freed(Step step, Range range) const {
      if (range.bytes == 0) return;
      StreamOp op = this->op(StreamOpKind::kFree, step, lanes.front());
      op.pool = PoolKind::kHost;
      op.range = range;
      log->write(op);
    }

    const std::shared_ptr<StreamLog> log;
    std::vector<Stream> lanes;
  };

  Range range(const Storage& storage, std::int64_t begin, std::int64_t bytes) {
    return {this->address(storage) + static_cast<std::uint64_t>(begin),
            static_cast<std::uint64_t>(bytes)};
  }

  std::shared_ptr<State> state_;
};

}  // namespace ferry::real
