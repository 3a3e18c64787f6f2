#include "verify/oracles/model_run.h"

#include <utility>

#include "formats/spans.h"
#include "shared/seam/hooks.h"

namespace ferry::verify {
namespace {

// Returns a copy of the tensor on a new storage. What comes back from a segment or a span is on a
// storage that no span made. If a backward inside a span saves it for the graph of a gradient, the
// span passes it on.
sim::Tensor made_again(const sim::TensorImpl& tensor) {
  sim::Machine& machine = *tensor.storage->machine;
  sim::Tensor again = std::make_shared<sim::TensorImpl>(tensor);
  again->storage = machine.allocate(tensor.storage->bytes, machine.current_stream());
  return again;
}

// Adds an element to the list while it lives.
template <class T>
class Pushed {
 public:
  Pushed(std::vector<T>& list, T last) : list_(list) { list_.push_back(std::move(last)); }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;
  ~Pushed() { list_.pop_back(); }

 private:
  std::vector<T>& list_;
};

}  // namespace

class ModelRun::Kept final : public Saved<sim::Tensor> {
 public:
  Kept(ModelRun& model, const sim::Tensor& tensor, SourceRef source)
      : model_(model),
        tensor_(std::make_shared<sim::TensorImpl>(*tensor)),
        source_(std::move(source)) {}
  sim::Tensor unpack() override {
    model_.again_ += source_->need(model_.tape_.autograd().graph_task());
    return source_->makes_again() ? made_again(*tensor_) : tensor_;
  }

 private:
  ModelRun& model_;
  const sim::Tensor tensor_;
  const SourceRef source_;
};

class ModelRun::Pair final : public Hooks<sim::Tensor> {
 public:
  Pair(ModelRun& model, Levels levels) : model_(model), levels_(std::move(levels)) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    return std::make_unique<Kept>(model_, tensor, source_of(tensor, levels_));
  }

 private:
  ModelRun& model_;
  const Levels levels_;
};

ModelRun::ModelRun(const Program& program, const std::vector<PlanSpan>& spans,
                   const SegmentPlan* plan, std::shared_ptr<const sim::Prepared> prepared)
    : machine_(sim::MachineOptions{}),
      tape_(program, machine_, *this, nullptr, {}, nullptr, std::move(prepared)) {
  machine_.add_consumer(&kernels_);
  tape_.set_segments(this);
  tape_.before_call([this, plan] { cursors_ = {Cursor{plan}}; });
  if (!spans.empty()) {
    tape_.set_spans(std::make_shared<const std::vector<SpanRange>>(span_ranges(program, spans)));
  }
  {
    const HooksGuard<sim::SimAutograd> around(tape_.autograd(),
                                              std::make_shared<Pair>(*this, Levels()));
    tape_.run();
  }
  tape_.drop_frames();
}

// Asks the innermost level first. What a segment passes on is not offered to the levels around it.
SourceRef ModelRun::source_of(const sim::Tensor& tensor, const Levels& levels) {
  for (auto at = levels.rbegin(); at != levels.rend(); ++at) {
    Level& level = **at;
    if (level.span) {
      if (SourceRef made = level.span->pack(tensor)) return made;
      continue;
    }
    const std::size_t ordinal = level.packs++;
    const bool chosen = level.plan && ordinal < level.plan->choices.size() &&
                        level.plan->choices[ordinal] != SavedChoice::kRecompute;
    if (!chosen) return std::make_shared<SegmentSource>(level.segment);
    break;
  }
  return std::make_shared<KeptSource>(tensor);
}

// Returns null if there is no plan for the segment.
const SegmentPlan* ModelRun::next_segment() {
  static const SegmentPlan plain = SegmentPlan::closed(false);
  if (cursors_.empty() || !cursors_.back().plan) return nullptr;
  Cursor& cursor = cursors_.back();
  if (cursor.next < cursor.plan->segments.size()) return &cursor.plan->segments[cursor.next++];
  return cursor.plan->unlisted ? nullptr : &plain;
}

void ModelRun::run(std::vector<sim::Value> inputs, CoreCheckpointOptions, Function,
                   Function forward) {
  sim::SimAutograd autograd = tape_.autograd();
  if (!autograd.grad_mode()) return forward(std::move(inputs));
  const SegmentPlan* const plan = next_segment();
  const Pushed<Cursor> cursor(cursors_, Cursor{plan});
  if (plan && !plan->checkpoint) return forward(std::move(inputs));
  const auto level = std::make_shared<Level>();
  level->segment = std::make_shared<SegmentModel>();
  level->plan = plan;
  for (const sim::Value& input : inputs) {
    if (input.tensor) level->segment->add_input(source_of(input.tensor, levels_));
  }
  const Pushed<std::shared_ptr<Level>> inside(levels_, level);
  const HooksGuard<sim::SimAutograd> guard(autograd, std::make_shared<Pair>(*this, levels_));
  forward(std::move(inputs));
}

void ModelRun::run_span(std::vector<sim::OpListener>& listeners,
                        const std::function<void()>& function) {
  sim::SimAutograd autograd = tape_.autograd();
  if (!autograd.grad_mode()) return function();
  const Levels around = levels_;
  const auto span =
      std::make_shared<SpanModel>(machine_.current_stream(), autograd.graph_task(), spans_);
  const auto level = std::make_shared<Level>();
  level->span = span;
  {
    const Pushed<std::shared_ptr<Level>> inside(levels_, level);
    const Pushed<sim::OpListener> listening(listeners, [this, span](const sim::RanOp& op) {
      span->ran(op, machine_.current_stream(), tape_.autograd().graph_task());
    });
    const HooksGuard<sim::SimAutograd> guard(autograd, std::make_shared<Pair>(*this, levels_));
    function();
  }
  span->end([&](const sim::Tensor& tensor) { return source_of(tensor, around); });
}

}  // namespace ferry::verify
