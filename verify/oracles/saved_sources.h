// What a saved tensor comes back from, in a model of a run in which nothing runs again: the tensor
// itself, a segment that would run again, or a span of operators.
//
// Each is refused by its own rule where it was written in place since it was saved:
//
//  * A tensor that was kept, or moved, is refused itself.
//  * What a segment recomputes is another tensor, so it may be written. The segment's inputs were
//    saved under the hooks around, and it is refused where one of these is.
//  * What a span makes is refused itself; and so is a tensor for which a call would have to run
//    again that read a tensor from outside, where that one was written since.
//
// A segment or a span brings back all that is alive when a graph task first needs something of it.
// Then what it begins from is needed, in the order of the calls that read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "shared/seam/autograd.h"
#include "sim/gpu/tensor.h"
#include "sim/program/tape.h"

namespace ferry::verify {

// PyTorch's error, in its words.
class Refused : public std::runtime_error {
 public:
  Refused(std::uint64_t now, std::uint64_t saved);
};

// A version as it was when a tensor was saved, or read.
class SeenVersion {
 public:
  explicit SeenVersion(const sim::Tensor& tensor)
      : counter_(tensor->version), seen_(tensor->version->value) {}
  bool is_written() const { return counter_->value != seen_; }
  void refuse_if_written() const {
    if (is_written()) throw Refused(counter_->value, seen_);
  }

 private:
  sim::Version counter_;
  std::uint64_t seen_;
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  // The tensor is needed in this graph task: returns how many calls of spans run again for it.
  // Throws Refused.
  virtual std::int64_t need(GraphTaskId task) = 0;
  virtual bool makes_again() const { return true; }
};
using SourceRef = std::shared_ptr<Source>;
// What saves a tensor.
using Saver = std::function<SourceRef(const sim::Tensor&)>;

class KeptSource final : public Source {
 public:
  explicit KeptSource(const sim::Tensor& tensor) : version_(tensor) {}
  std::int64_t need(GraphTaskId) override {
    version_.refuse_if_written();
    return 0;
  }
  bool makes_again() const override { return false; }

 private:
  const SeenVersion version_;
};

class SegmentModel {
 public:
  void add_input(SourceRef input) { inputs_.push_back(std::move(input)); }
  std::int64_t need(GraphTaskId task);

 private:
  std::vector<SourceRef> inputs_;
  std::set<GraphTaskId> ran_;  // the tasks that it has run again for
};

class SegmentSource final : public Source {
 public:
  explicit SegmentSource(std::shared_ptr<SegmentModel> segment) : segment_(std::move(segment)) {}
  std::int64_t need(GraphTaskId task) override { return segment_->need(task); }

 private:
  const std::shared_ptr<SegmentModel> segment_;
};

// What spans did, all of them together.
struct SpanCounts {
  std::int64_t spans = 0;
  std::int64_t calls = 0;       // that may run again
  std::int64_t calls_left = 0;  // of these, needed by what autograd has when their span ends
  std::int64_t saved = 0;       // of what they made
  std::int64_t passed_on = 0;   // of what they did not
  std::int64_t held = 0;        // tensors from outside that calls read which are needed at its end
  std::int64_t replays = 0;     // that brought something back
};

class SpanModel : public std::enable_shared_from_this<SpanModel> {
 public:
  // The counts outlive it.
  SpanModel(StreamId stream, GraphTaskId task, SpanCounts& counts)
      : stream_(stream), task_(task), counts_(counts) {
    ++counts_.spans;
  }

  void ran(const sim::RanOp& op, StreamId stream, GraphTaskId task);
  // None: it is not what the span made.
  SourceRef pack(const sim::Tensor& tensor);
  // `save`: what saves a tensor around the span.
  void end(const Saver& save);

 private:
  using StorageId = std::uint64_t;
  class MadeSource;

  // An op that may run again.
  struct Call {
    struct Outside {
      SeenVersion version;
      SourceRef source;
      sim::Tensor tensor;  // until the span ends
    };
    std::vector<StorageId> reads;    // those that the span made
    std::vector<StorageId> changes;  // makes or writes
    std::vector<Outside> outside;
  };
  struct Pack {
    StorageId storage = 0;
    std::size_t calls = 0;  // that had run
    SeenVersion version;
    bool alive = true;
  };

  bool is_made(const sim::Tensor& tensor) const {
    return made_.contains(tensor->storage->identity);
  }
  std::int64_t need(std::size_t ordinal, GraphTaskId task);
  std::int64_t replay(const std::vector<std::size_t>& ordinals, GraphTaskId task);
  std::set<std::size_t> needed(const std::vector<std::size_t>& ordinals) const;
  void forget(std::size_t ordinal);

  const StreamId stream_;
  const GraphTaskId task_;
  SpanCounts& counts_;
  std::set<StorageId> made_;
  std::vector<Call> calls_;
  std::vector<Pack> packs_;
  std::map<GraphTaskId, std::set<std::size_t>> runs_;  // what is ready
  bool ended_ = false;
};

}  // namespace ferry::verify
