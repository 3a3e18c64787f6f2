#include "sim/verify/oracles/replays.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "formats/spans.h"
#include "shared/seam/hooks.h"
#include "sim/program/tape.h"

namespace ferry::verify {
namespace {

using StorageId = std::uint64_t;

class Span;

// A saved tensor that a span makes again.
struct Made {
  std::shared_ptr<Span> span;
  std::size_t ordinal = 0;
};

// An op of a span that may run again.
struct Call {
  struct Outside {
    sim::Tensor tensor;
    std::uint64_t version = 0;
    std::optional<Made> made = {};  // by a span around
  };
  std::vector<StorageId> reads;    // those that the span made
  std::vector<StorageId> changes;  // makes or writes
  std::vector<Outside> outside;
};

class Span {
 public:
  Span(StreamId stream, GraphTaskId task) : stream_(stream), task_(task) {}

  void ran(const sim::RanOp& op, StreamId stream, GraphTaskId task) {
    const auto is_made = [this](const sim::Tensor& tensor) {
      return made_.contains(tensor->storage->identity);
    };
    bool again = op.run && stream == stream_ && task == task_;
    for (const auto& input : op.inputs) again &= !input.written || is_made(input.tensor);
    Call call;
    for (const auto& input : op.inputs) {
      const StorageId storage = input.tensor->storage->identity;
      if (input.written && !again) made_.erase(storage);
      if (input.written) call.changes.push_back(storage);
      if (is_made(input.tensor)) {
        call.reads.push_back(storage);
      } else {
        call.outside.push_back({input.tensor, input.tensor->version->value});
      }
    }
    if (!again) return;
    for (const sim::Tensor& output : op.outputs) {
      call.changes.push_back(output->storage->identity);
      made_.insert(output->storage->identity);
    }
    if (!call.changes.empty()) calls_.push_back(std::move(call));
  }

  // Its ordinal; none: it is not what the span made.
  std::optional<std::size_t> pack(const sim::Tensor& tensor) {
    const StorageId storage = tensor->storage->identity;
    if (!made_.contains(storage)) return std::nullopt;
    packs_.push_back({storage, calls_.size(), true});
    return packs_.size() - 1;
  }
  void forget(std::size_t ordinal) {
    packs_[ordinal].alive = false;
    const auto alive = [](const Pack& pack) { return pack.alive; };
    if (ended_ && std::none_of(packs_.begin(), packs_.end(), alive)) drop();
  }

  // `save`: what saves a tensor around the span.
  void end(const std::function<std::optional<Made>(const sim::Tensor&)>& save) {
    std::vector<std::size_t> all, alive;
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      all.push_back(i);
      if (packs_[i].alive) alive.push_back(i);
    }
    for (const std::size_t number : needed(all)) {
      for (Call::Outside& each : calls_[number].outside) {
        if (each.tensor->version->value == each.version) each.made = save(each.tensor);
      }
    }
    const std::set<std::size_t> kept = needed(alive);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!kept.contains(i)) drop(calls_[i]);
      for (Call::Outside& each : calls_[i].outside) each.tensor = nullptr;
    }
    ended_ = true;
    made_.clear();
  }

  // The calls that run again for it, and for what these need of spans around.
  std::int64_t unpack(std::size_t ordinal, GraphTaskId task) {
    const auto run = runs_.find(task);
    if (task != GraphTaskId::kNone && run == runs_.end()) {
      std::set<std::size_t>& ready = runs_[task];
      for (std::size_t i = 0; i < packs_.size(); ++i) {
        if (packs_[i].alive) ready.insert(i);
      }
      const std::int64_t calls = replay({ready.begin(), ready.end()}, task);
      runs_[task].erase(ordinal);
      return calls;
    }
    if (run != runs_.end() && run->second.erase(ordinal) > 0) return 0;
    return replay({ordinal}, task);
  }

 private:
  struct Pack {
    StorageId storage = 0;
    std::size_t calls = 0;  // that had run
    bool alive = true;
  };

  std::int64_t replay(const std::vector<std::size_t>& ordinals, GraphTaskId task) {
    std::int64_t calls = 0;
    for (const std::size_t number : needed(ordinals)) {
      ++calls;
      for (const Call::Outside& each : calls_[number].outside) {
        if (each.made) calls += each.made->span->unpack(each.made->ordinal, task);
      }
    }
    return calls;
  }

  // Every call that changed one of these before it was packed, and what those calls read of it.
  std::set<std::size_t> needed(const std::vector<std::size_t>& ordinals) const {
    std::set<std::size_t> needed;
    const std::function<void(StorageId, std::size_t)> need = [&](StorageId storage,
                                                                 std::size_t before) {
      for (std::size_t i = before; i-- > 0;) {
        const Call& call = calls_[i];
        if (std::find(call.changes.begin(), call.changes.end(), storage) == call.changes.end()) {
          continue;
        }
        if (!needed.insert(i).second) continue;
        for (const StorageId read : call.reads) need(read, i);
      }
    };
    for (const std::size_t each : ordinals) need(packs_[each].storage, packs_[each].calls);
    return needed;
  }

  static void drop(Call& call) {
    for (Call::Outside& each : call.outside) {
      if (each.made) each.made->span->forget(each.made->ordinal);
      each.made.reset();
    }
  }
  void drop() {
    for (Call& call : calls_) drop(call);
  }

  const StreamId stream_;
  const GraphTaskId task_;
  std::set<StorageId> made_;
  std::vector<Call> calls_;
  std::vector<Pack> packs_;
  std::map<GraphTaskId, std::set<std::size_t>> runs_;  // what is ready
  bool ended_ = false;
};

class Counting final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override { kernels += op.kind == StreamOpKind::kKernel; }
  std::int64_t kernels = 0;
};

// Runs the program and keeps all that is saved.
class ReplayModel final : private sim::KernelTimes, private sim::SegmentRunner {
 public:
  ReplayModel(const Program& program, const std::vector<PlanSpan>& spans)
      : machine_(sim::MachineOptions{}), tape_(program, machine_, *this, nullptr) {
    machine_.add_consumer(&counting_);
    tape_.set_segments(this);
    if (!spans.empty()) {
      tape_.set_spans(std::make_shared<const std::vector<SpanRange>>(span_ranges(program, spans)));
    }
    tape_.run();
    tape_.drop_frames();
  }
  ReplayCounts counts() const { return {counting_.kernels, again_}; }

 private:
  class Kept final : public Saved<sim::Tensor> {
   public:
    Kept(ReplayModel& model, const sim::Tensor& tensor, std::optional<Made> made)
        : model_(model),
          tensor_(std::make_shared<sim::TensorImpl>(*tensor)),
          made_(std::move(made)) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() override {
      if (made_) made_->span->forget(made_->ordinal);
    }
    sim::Tensor unpack() override {
      const GraphTaskId task = model_.tape_.autograd().graph_task();
      if (!made_) return tensor_;
      model_.again_ += made_->span->unpack(made_->ordinal, task);
      return made_again(*tensor_);
    }

   private:
    ReplayModel& model_;
    const sim::Tensor tensor_;
    const std::optional<Made> made_;
  };

  class Pair final : public Hooks<sim::Tensor> {
   public:
    Pair(ReplayModel& model, std::vector<std::shared_ptr<Span>> spans)
        : model_(model), spans_(std::move(spans)) {}
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
      return std::make_unique<Kept>(model_, tensor, made_of(tensor, spans_));
    }

   private:
    ReplayModel& model_;
    const std::vector<std::shared_ptr<Span>> spans_;
  };

  // While it lives, the span runs, and is told of each op.
  class Inside {
   public:
    Inside(std::vector<std::shared_ptr<Span>>& spans, std::vector<sim::OpListener>& listeners,
           std::shared_ptr<Span> span, sim::OpListener listener)
        : spans_(spans), listeners_(listeners) {
      spans_.push_back(std::move(span));
      listeners_.push_back(std::move(listener));
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      spans_.pop_back();
      listeners_.pop_back();
    }

   private:
    std::vector<std::shared_ptr<Span>>& spans_;
    std::vector<sim::OpListener>& listeners_;
  };

  // What a replay makes is on a storage that no span made: where a backward inside a span saves it
  // for the graph of a gradient, the span passes it on.
  static sim::Tensor made_again(const sim::TensorImpl& tensor) {
    sim::Machine& machine = *tensor.storage->machine;
    sim::Tensor again = std::make_shared<sim::TensorImpl>(tensor);
    again->storage = machine.allocate(tensor.storage->bytes, machine.current_stream());
    return again;
  }

  // By the innermost span that made it.
  static std::optional<Made> made_of(const sim::Tensor& tensor,
                                     const std::vector<std::shared_ptr<Span>>& spans) {
    for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
      if (const auto ordinal = (*span)->pack(tensor)) return Made{*span, *ordinal};
    }
    return std::nullopt;
  }

  void run(std::vector<sim::Value> inputs, CoreCheckpointOptions, Function,
           Function forward) override {
    forward(std::move(inputs));
  }
  std::vector<sim::Value> run_reentrant(
      const std::vector<sim::Value>& inputs, const CoreCheckpointOptions&,
      std::function<std::vector<sim::Value>(std::vector<sim::Value>)> function) override {
    return function(inputs);
  }
  void run_span(std::vector<sim::OpListener>& listeners,
                const std::function<void()>& function) override {
    sim::SimAutograd autograd = tape_.autograd();
    if (!autograd.grad_mode()) return function();
    const std::vector<std::shared_ptr<Span>> around = spans_;
    const auto span = std::make_shared<Span>(machine_.current_stream(), autograd.graph_task());
    {
      const Inside inside(spans_, listeners, span, [this, &span](const sim::RanOp& op) {
        span->ran(op, machine_.current_stream(), tape_.autograd().graph_task());
      });
      const HooksGuard<sim::SimAutograd> guard(autograd, std::make_shared<Pair>(*this, spans_));
      function();
    }
    span->end([&](const sim::Tensor& tensor) { return made_of(tensor, around); });
  }
  sim::Time op_ns(const Op&, DType) const override { return 1; }

  Counting counting_;
  std::int64_t again_ = 0;
  sim::Machine machine_;
  sim::Tape tape_;
  std::vector<std::shared_ptr<Span>> spans_;  // that run now, from the outermost one
};

}  // namespace

ReplayCounts expected_replays(const Program& program, const std::vector<PlanSpan>& spans) {
  return ReplayModel(program, spans).counts();
}

}  // namespace ferry::verify
