// Says where a saved tensor comes back from, in a model of a run that recomputes nothing: from the
// tensor itself, from a segment, or from a span of operators.
//
// If a tensor was written in place after its save, each source has its own rule for an error:
//
// * A tensor that was kept or moved: error.
// * A tensor that a segment recomputes is a new tensor, so it may be written. But the segment's
//   inputs were saved under the hooks around it, and a written input is an error.
// * A tensor that a span made: error. It is also an error if a call that must be recomputed for the
//   tensor read a tensor from outside, and that one was written since.
//
// A segment or a span brings back everything that is alive when a graph task first needs some of
// it. Its own inputs are then needed in the order of the calls that read them.
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

// Has the words of PyTorch's error.
class Refused : public std::runtime_error {
 public:
  Refused(std::uint64_t now, std::uint64_t saved);
};

// The version of a tensor when it was saved or read.
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
  // Called when the tensor is needed in this graph task. Returns how many calls of spans are
  // recomputed for it. Throws Refused.
  virtual std::int64_t need(GraphTaskId task) = 0;
  virtual bool makes_again() const { return true; }
};
using SourceRef = std::shared_ptr<Source>;
// Saves a tensor and returns its source.
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
  std::set<GraphTaskId> ran_;  // tasks in which it was recomputed
};

class SegmentSource final : public Source {
 public:
  explicit SegmentSource(std::shared_ptr<SegmentModel> segment) : segment_(std::move(segment)) {}
  std::int64_t need(GraphTaskId task) override { return segment_->need(task); }

 private:
  const std::shared_ptr<SegmentModel> segment_;
};

// Counts for all spans together.
struct SpanCounts {
  std::int64_t spans = 0;
  std::int64_t calls = 0;       // calls that can be recomputed
  std::int64_t calls_left = 0;  // of these, the ones still needed when their span ends
  std::int64_t saved = 0;       // packs of tensors that the spans made
  std::int64_t passed_on = 0;   // packs of other tensors
  std::int64_t held = 0;        // outside tensors read by calls that are needed at the span's end
  std::int64_t replays = 0;     // replays that brought something back
};

class SpanModel : public std::enable_shared_from_this<SpanModel> {
 public:
  // `counts` must outlive it.
  SpanModel(StreamId stream, GraphTaskId task, SpanCounts& counts)
      : stream_(stream), task_(task), counts_(counts) {
    ++counts_.spans;
  }

  void ran(const sim::RanOp& op, StreamId stream, GraphTaskId task);
  // Returns null if the span did not make the tensor.
  SourceRef pack(const sim::Tensor& tensor);
  // `save` saves a tensor under the hooks around the span.
  void end(const Saver& save);

 private:
  using StorageId = std::uint64_t;
  class MadeSource;

  // An op that can be recomputed.
  struct Call {
    struct Outside {
      SeenVersion version;
      SourceRef source;
      sim::Tensor tensor;  // kept until the span ends
    };
    std::vector<StorageId> reads;    // storages that the span made
    std::vector<StorageId> changes;  // storages that it makes or writes
    std::vector<Outside> outside;
  };
  struct Pack {
    StorageId storage = 0;
    std::size_t calls = 0;  // calls that had run before the pack
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
  std::map<GraphTaskId, std::set<std::size_t>> runs_;  // tensors that are ready, by task
  bool ended_ = false;
};

}  // namespace ferry::verify
