// Clocks: the order between operations of streams and host threads.
//
// Every actor (a stream or a host thread) has a vector clock. For each actor, the clock holds the
// last op of it that is certainly done when the owner's next op runs.
// * An event is a copy of a stream's clock, taken by the record. A new record replaces the copy. A
//   wait for an event that was never recorded, or was destroyed, does nothing.
// * A token is the same between host threads and host functions.
// * A host thread learns from event, stream and device synchronisation. Each op that it issues
//   later comes after what the thread knew at that time. It knows nothing of what other threads
//   learned.
// So, for this order of the calls, a verdict holds for every timing of the device and of the
// threads between their acquires.
//
// The legacy default stream of a device: an op on it waits for all earlier work of the device's
// blocking streams, and their later work waits for it. Every call that names the stream counts as
// such an op, also a record or a synchronisation: CUDA has the legacy stream wait "when an action
// is taken" in it.
//
// An op is *settled* when every host thread knows that it is done. It comes before all later ops on
// any stream, because a stream learns what the issuing thread knows.
//
// The first declaration of a stream gives its kind and device; before it, the stream is nonblocking
// and on device 0. A stream that is created again under an old id is a new stream. To destroy a
// stream waits for nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::check {

// A map from ids to numbers. Ids may be any number; small ones index a vector.
class DenseIds {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t find(std::uint32_t id) const {
    if (id < small_.size()) return small_[id];
    if (id < kSmall) return kNone;
    const auto found = large_.find(id);
    return found == large_.end() ? kNone : found->second;
  }
  void set(std::uint32_t id, std::uint32_t number) {
    if (id >= kSmall) {
      large_[id] = number;
      return;
    }
    if (id >= small_.size()) {
      small_.resize(std::min<std::size_t>(kSmall, std::size_t{id} * 2 + 16), kNone);
    }
    small_[id] = number;
  }

 private:
  static constexpr std::uint32_t kSmall = 1u << 20;
  std::vector<std::uint32_t> small_;
  std::unordered_map<std::uint32_t, std::uint32_t> large_;
};

// The clocks, one row for each, all as wide as there are actors. A component is an op's number + 1,
// or 0 for no op.
class ClockRows {
 public:
  std::uint32_t* row(std::uint32_t i) { return cells_.data() + std::size_t{i} * width_; }
  const std::uint32_t* row(std::uint32_t i) const {
    return cells_.data() + std::size_t{i} * width_;
  }
  std::uint32_t width() const { return width_; }
  void resize(std::uint32_t rows);  // throws std::length_error if they are too many
  void widen(std::uint32_t width);
  static void join(std::uint32_t* into, const std::uint32_t* from, std::uint32_t width) {
    for (std::uint32_t i = 0; i < width; ++i) into[i] = std::max(into[i], from[i]);
  }

 private:
  std::uint32_t width_ = 8;
  std::vector<std::uint32_t> cells_;
};

// Copies of clocks under an id, for events and tokens.
class Snapshots {
 public:
  void widen(std::uint32_t width) { rows_.widen(width); }
  void put(std::uint32_t id, const std::uint32_t* clock);
  void drop(std::uint32_t id);
  // Returns null if no clock is stored under the id.
  const std::uint32_t* find(std::uint32_t id) const {
    const std::uint32_t row = ids_.find(id);
    return row == DenseIds::kNone || !there_[row] ? nullptr : rows_.row(row);
  }

 private:
  DenseIds ids_;
  ClockRows rows_;
  std::vector<char> there_;
};

class Clocks {
 public:
  using Actor = std::uint16_t;
  static constexpr Actor kNobody = 0xffff;
  // An actor's place in the clocks. Another stream gets a destroyed stream's place, with a new
  // birth.
  struct Place {
    Actor actor = kNobody;
    std::uint32_t birth = 0;
    bool operator==(const Place&) const = default;
  };

  Clocks();

  // Returns the actor of the stream to which the thread issues an op. The stream learns what the
  // thread knows.
  Actor issue(StreamId id, HostThread by) {
    const Actor host = thread(by);
    const Actor actor = stream(id);
    Info& info = infos_[actor];
    if (info.version != infos_[host].version) {
      join(actor, rows_.row(host));
      info.version = infos_[host].version;
    }
    if (info.kind != StreamKind::kNonblocking) follow_legacy(actor);
    return actor;
  }
  // Returns the stream's actor. It issues no op.
  Actor stream(StreamId stream) {
    const std::uint32_t known = stream_ids_.find(static_cast<std::uint32_t>(stream));
    return known == DenseIds::kNone ? add_stream(stream) : static_cast<Actor>(known);
  }
  Actor thread(HostThread thread) {
    if (thread != HostThread{}) return find(thread);
    if (!default_thread_) [[unlikely]]
      begin_default_thread();
    return Actor{0};
  }
  // Applies the order that an op creates. Ops that are accesses create none.
  void order(const StreamOp& op);

  void act(Actor stream, std::uint32_t seq) { rows_.row(stream)[stream] = seq; }
  void act_on_host(Actor thread, std::uint32_t seq) {
    act(thread, seq);
    infos_[thread].version = ++versions_;
  }
  void host_waits(Actor thread, const std::uint32_t* clock);  // null: the thread learns nothing
  void destroy_event(EventId event) { events_.drop(static_cast<std::uint32_t>(event)); }
  // Records as certain what every host thread knows now. Threads that appear later know it too,
  // because a thread that knows it made them.
  void settle();
  // True if everything that the event stands for is settled. A wait for it then does nothing.
  bool settled(EventId event) const;
  bool settled(HostToken token) const;
  bool settled(Actor actor, std::uint32_t seq) const {  // the same for an op of the actor
    return seq <= certain_.row(0)[actor];
  }
  // True if the id still has a place. A destroyed stream's place goes to another stream.
  bool knows(StreamId stream) const {
    return stream_ids_.find(static_cast<std::uint32_t>(stream)) != DenseIds::kNone;
  }
  // The host threads that have issued an op. One of them makes each later thread.
  const std::vector<Actor>& threads() const { return threads_; }
  void forget_token(HostToken token) { tokens_.drop(static_cast<std::uint32_t>(token)); }

  const std::uint32_t* clock(Actor actor) const { return rows_.row(actor); }
  // Null if the event was never recorded, or is destroyed.
  const std::uint32_t* clock(EventId event) const {
    return events_.find(static_cast<std::uint32_t>(event));
  }
  std::uint32_t width() const { return rows_.width(); }
  Place place(Actor actor) const { return {actor, infos_[actor].birth}; }
  // False if another stream has the place now: every thread knew that the old stream's work was
  // done.
  bool is_there(Place place) const { return infos_[place.actor].birth == place.birth; }
  bool is_thread(Actor actor) const { return infos_[actor].is_thread; }
  StreamId stream_of(Actor actor) const { return StreamId{infos_[actor].id}; }
  HostThread thread_of(Actor actor) const { return HostThread{infos_[actor].id}; }

 private:
  struct Info {
    std::uint32_t id = 0;       // the StreamId or HostThread
    std::uint32_t version = 0;  // of a thread's clock; of a stream: the last that it learned
    std::uint32_t birth = 0;    // number of streams that had the place before
    std::uint32_t device = 0;
    std::uint32_t legacy_version = 0;  // version of the legacy clock that a blocking stream knows
    StreamKind kind = StreamKind::kNonblocking;
    bool is_thread = false;
    bool declared = false;
    bool destroyed = false;
    bool busy = false;  // a blocking stream with work since the legacy stream's last op
  };
  // The legacy stream and the blocking streams of one device.
  struct Device {
    std::vector<Actor> busy;
    Actor legacy = kNobody;
    std::uint32_t version = 0;  // of the legacy stream's clock
  };

  Actor find(HostThread thread);
  void begin_default_thread();
  Actor add(std::uint32_t id, bool is_thread);
  Actor add_stream(StreamId stream);
  Actor recycle();
  void declare(const StreamOp& op);
  void destroy(StreamId stream);
  void follow_legacy(Actor actor);
  void device_sync(const StreamOp& op);
  bool certain(const std::uint32_t* clock) const;
  void join(Actor into, const std::uint32_t* from) {
    ClockRows::join(rows_.row(into), from, rows_.width());
  }

  ClockRows rows_;     // by actor
  ClockRows synced_;   // one row: what device synchronisations made certain for new streams
  ClockRows certain_;  // one row: work that settle() found certain
  std::vector<Info> infos_;
  std::vector<Actor> threads_, retired_;
  DenseIds stream_ids_, thread_ids_;
  Snapshots events_, tokens_;
  std::unordered_map<std::uint32_t, Device> devices_;
  std::uint32_t versions_ = 0;
  bool default_thread_ = false;  // true once it has issued an op
};

}  // namespace ferry::check
