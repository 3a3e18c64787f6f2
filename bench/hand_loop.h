// The yardstick: a hand-written generic event loop over streams, events and engines, 4-ary heap.
//
// What somebody would write who needs just this: the whole program is known before the run, arrays
// instead of queues, no host time, no bandwidth that changes, no statistics. It is generic in that
// it takes any program of kernels, copies, records and waits on any number of devices. The digest
// is a template argument, so that a timed run does not pay for it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ferry::bench {

enum class HandKind : std::uint32_t { kCompute, kDown, kUp, kRecord, kWait };

struct HandOp {
  std::int64_t value;  // ns, or the number of the signal
  HandKind kind;
  std::uint32_t op;
};

class HandLoop {
 public:
  std::uint32_t add_device() {
    engines_.resize(engines_.size() + 3);
    return static_cast<std::uint32_t>(engines_.size() / 3 - 1);
  }
  std::uint32_t add_stream(std::uint32_t device) {
    streams_.emplace_back().device = device;
    return static_cast<std::uint32_t>(streams_.size() - 1);
  }
  void activity(std::uint32_t stream, HandKind kind, std::int64_t ns) {
    streams_[stream].ops.push_back({ns, kind, ops_++});
  }
  std::uint32_t record(std::uint32_t stream) {
    const auto signal = static_cast<std::uint32_t>(signals_.size());
    signals_.emplace_back();
    streams_[stream].ops.push_back({signal, HandKind::kRecord, ops_++});
    return signal;
  }
  void wait(std::uint32_t stream, std::uint32_t signal) {
    streams_[stream].ops.push_back({signal, HandKind::kWait, ops_++});
  }

  // Returns the makespan. Runs once.
  template <bool kDigest>
  std::int64_t run(std::uint64_t (*hash)(std::uint64_t, std::int64_t, std::int64_t) = nullptr) {
    for (std::uint32_t s = 0; s < streams_.size(); ++s) run_stream<kDigest>(s, hash);
    arbitrate();
    while (!heap_.empty()) {
      now_ = heap_.front().time;
      do {
        const std::uint32_t id = heap_.front().engine;
        pop();
        Engine& engine = engines_[id];
        const std::uint32_t stream = engine.running;
        engine.running = kNone;
        dirty_.push_back(id);
        Stream& s = streams_[stream];
        if constexpr (kDigest) digest_ += hash(s.ops[s.head].op, engine.start, now_);
        ++s.head;
        run_stream<kDigest>(stream, hash);
      } while (!heap_.empty() && heap_.front().time == now_);
      arbitrate();
    }
    return now_;
  }

  std::uint64_t digest() const { return digest_; }
  std::uint32_t ops() const { return ops_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Stream {
    std::vector<HandOp> ops;
    std::uint32_t head = 0;
    std::uint32_t device = 0;
    std::uint32_t next = kNone;
    bool waiting = false;
    std::int64_t ready = 0;
  };
  struct Engine {
    std::uint32_t running = kNone;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::int64_t start = 0;
  };
  struct Signal {
    std::int64_t time = -1;
    std::uint32_t waiters = kNone;
  };
  struct Event {
    std::int64_t time;
    std::uint32_t op;
    std::uint32_t engine;
    bool before(const Event& other) const {
      return time != other.time ? time < other.time : op < other.op;
    }
  };

  template <bool kDigest>
  void run_stream(std::uint32_t first,
                  std::uint64_t (*hash)(std::uint64_t, std::int64_t, std::int64_t)) {
    runnable_.push_back(first);
    while (!runnable_.empty()) {
      const std::uint32_t id = runnable_.back();
      runnable_.pop_back();
      Stream& s = streams_[id];
      for (; s.head < s.ops.size(); ++s.head) {
        const HandOp& op = s.ops[s.head];
        if (!s.waiting) s.ready = now_;
        if (op.kind < HandKind::kRecord) {
          enqueue(s.device * 3 + static_cast<std::uint32_t>(op.kind), id);
          break;
        }
        Signal& signal = signals_[static_cast<std::size_t>(op.value)];
        if (op.kind == HandKind::kRecord) {
          signal.time = now_;
          for (std::uint32_t w = signal.waiters; w != kNone; w = streams_[w].next) {
            runnable_.push_back(w);
          }
        } else if (signal.time < 0) {
          s.waiting = true;
          s.next = std::exchange(signal.waiters, id);
          break;
        }
        s.waiting = false;
        if constexpr (kDigest) digest_ += hash(op.op, s.ready, now_);
      }
    }
  }

  void enqueue(std::uint32_t id, std::uint32_t stream) {
    Engine& engine = engines_[id];
    dirty_.push_back(id);
    std::uint32_t* link = &engine.first;
    if (engine.first != kNone && goes_first(engine.last, stream)) {
      link = &streams_[engine.last].next;
    }
    while (*link != kNone && goes_first(*link, stream)) link = &streams_[*link].next;
    streams_[stream].next = std::exchange(*link, stream);
    if (streams_[stream].next == kNone) engine.last = stream;
  }
  bool goes_first(std::uint32_t a, std::uint32_t b) const {
    const Stream& x = streams_[a];
    const Stream& y = streams_[b];
    return x.ready != y.ready ? x.ready < y.ready : x.ops[x.head].op < y.ops[y.head].op;
  }
  void arbitrate() {
    for (const std::uint32_t id : dirty_) {
      Engine& engine = engines_[id];
      if (engine.running != kNone || engine.first == kNone) continue;
      engine.running = engine.first;
      Stream& s = streams_[engine.running];
      engine.first = std::exchange(s.next, kNone);
      engine.start = now_;
      push({now_ + s.ops[s.head].value, s.ops[s.head].op, id});
    }
    dirty_.clear();
  }

  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0 && event.before(heap_[(at - 1) / 4]); at = (at - 1) / 4) {
      heap_[at] = heap_[(at - 1) / 4];
    }
    heap_[at] = event;
  }
  void pop() {
    const Event event = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (std::size_t first = 1; first < size; first = at * 4 + 1) {
      std::size_t least = first;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      for (std::size_t i = first + 1; i < end; ++i) {
        if (heap_[i].before(heap_[least])) least = i;
      }
      if (!heap_[least].before(event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Stream> streams_;
  std::vector<Engine> engines_;
  std::vector<Signal> signals_;
  std::vector<Event> heap_;
  std::vector<std::uint32_t> runnable_;
  std::vector<std::uint32_t> dirty_;
  std::int64_t now_ = 0;
  std::uint64_t digest_ = 0;
  std::uint32_t ops_ = 0;
};

}  // namespace ferry::bench
