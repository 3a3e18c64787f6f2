#include "plan/survey.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "sim/run/core.h"
#include "sim/run/training/hardware_model.h"

namespace ferry::plan {
namespace {

// Hooks that record each saved tensor and leave it in place. Segments run without a checkpoint.
class Surveyor final : public Hooks<sim::Tensor>, public sim::SegmentRunner {
 public:
  Surveyor(const Program& program, sim::Tape& tape) : tape_(tape) {
    for (std::size_t i = 0; i < program.globals.size(); ++i) {
      const std::uint64_t identity = tape.globals()[i].tensor->storage->identity;
      globals_.push_back(identity);
      if (program.globals[i].kind != GlobalKind::kInput) exempt_.push_back(identity);
    }
  }

  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    if (forwards != 1) return nullptr;
    // No node saves the inputs of a replay.
    const std::string_view node = tape_.saving_node();
    (inputs_ ? *inputs_ : found.packs).push_back(describe(node.empty() ? "replay" : node, tensor));
    return nullptr;
  }

  void run(std::vector<sim::Value> inputs, CoreCheckpointOptions, Function,
           Function forward) override {
    const auto run = [&] {
      forward(std::move(inputs));
      return std::vector<sim::Value>();
    };
    segment(inputs, false, run);
  }
  std::vector<sim::Value> run_reentrant(
      const std::vector<sim::Value>& inputs, const CoreCheckpointOptions&,
      std::function<std::vector<sim::Value>(std::vector<sim::Value>)> function) override {
    return segment(inputs, true, [&] { return function(inputs); });
  }

  int forwards = 0;
  std::uint32_t kernels = 0;  // number of kernels so far
  Survey found;

 private:
  PackedTensor describe(std::string_view node, const sim::Tensor& tensor) {
    const std::uint64_t identity = tensor->storage->identity;
    const auto among = [identity](const std::vector<std::uint64_t>& list) {
      return std::find(list.begin(), list.end(), identity) != list.end();
    };
    const auto group = groups_.try_emplace(identity, groups_.size()).first->second;
    return {std::string(node),
            tensor->layout.window->layout,
            group,
            identity,
            tensor->storage->bytes,
            among(globals_),
            among(exempt_),
            kernels};
  }

  template <class Run>
  std::vector<sim::Value> segment(const std::vector<sim::Value>& inputs, bool whole, Run run) {
    if (forwards != 1 || inside_) return run();
    SurveyedSegment segment;
    segment.whole = whole;
    segment.first = found.packs.size();
    segment.kernels = kernels;
    // Save the inputs as a checkpoint would. Hooks do not see them if an exclusion hides the hooks.
    inputs_ = &segment.inputs;
    for (const sim::Value& input : inputs) tape_.autograd().save(input);
    inputs_ = nullptr;
    inside_ = true;
    std::vector<sim::Value> results = run();
    inside_ = false;
    segment.end = found.packs.size();
    found.segments.push_back(std::move(segment));
    return results;
  }

  sim::Tape& tape_;
  std::vector<std::uint64_t> globals_;
  std::vector<std::uint64_t> exempt_;
  std::map<std::uint64_t, std::uint64_t> groups_;
  std::vector<PackedTensor>* inputs_ = nullptr;  // set while a segment's inputs are saved
  bool inside_ = false;                          // true within a segment
};

// Thrown to end the run early: everything has been surveyed.
struct Surveyed {};

// Counts kernels. If `stops`, it ends the run when the first backward begins.
class Counter final : public StreamOpConsumer {
 public:
  explicit Counter(bool stops) : stops_(stops) {}
  void watch(Surveyor& surveyor, const sim::SimAutograd& autograd) {
    surveyor_ = &surveyor;
    autograd_ = autograd;
  }
  void operator()(const StreamOp& op) override {
    if (op.kind != StreamOpKind::kKernel) return;
    ++surveyor_->kernels;
    if (stops_ && autograd_->graph_task() != GraphTaskId::kNone) throw Surveyed();
  }

 private:
  const bool stops_;
  Surveyor* surveyor_ = nullptr;
  std::optional<sim::SimAutograd> autograd_;
};

// True if the first forward saves nothing more after a backward has begun: only main runs backward,
// backward makes no graph, and main makes no node between the backward and its next call.
bool ends_at_first_backward(const Program& program) {
  for (CodeId id = 0; id < program.codes.size(); ++id) {
    if (id == program.main) continue;
    for (const Statement& statement : program.codes[id].statements) {
      if (std::holds_alternative<Backward>(statement.action)) return false;
    }
  }
  bool in_backward = false;
  for (const Statement& statement : program.codes[program.main].statements) {
    const auto* const backward = std::get_if<Backward>(&statement.action);
    if (backward && backward->create_graph) return false;
    in_backward = in_backward || backward;
    if (!in_backward) continue;
    if (std::holds_alternative<Call>(statement.action)) return true;
    if (std::holds_alternative<MakeNode>(statement.action) ||
        std::holds_alternative<Save>(statement.action)) {
      return false;
    }
  }
  return true;
}

// Runs the program until nothing more is saved. With `spans` null it surveys segments. Otherwise it
// surveys the spans, and segments run as in a step.
Survey surveyed(const Program& program, const Hardware& hardware,
                const std::vector<PlanSpan>* spans, std::shared_ptr<const sim::Prepared> prepared) {
  const sim::Roofline times(hardware);
  Counter counter(ends_at_first_backward(program));  // outlives the tape, which frees at its end
  sim::Machine machine(sim::machine_options(hardware));
  machine.add_consumer(&counter);
  sim::Tape tape(program, machine, times, nullptr, {}, nullptr, std::move(prepared));
  const auto surveyor = std::make_shared<Surveyor>(program, tape);
  sim::Segments<sim::SimDevice> runner(machine, {sim::SimDevice(machine)}, tape.autograd(), {});
  tape.before_call([&surveyor] { ++surveyor->forwards; });
  if (spans) {
    tape.set_spans(std::make_shared<const std::vector<SpanRange>>(span_ranges(program, *spans)));
    tape.set_segments(&runner);
  } else {
    tape.set_segments(surveyor.get());
  }
  counter.watch(*surveyor, tape.autograd());
  try {
    const HooksGuard<sim::SimAutograd> guard(tape.autograd(), surveyor);
    tape.run();
  } catch (const Surveyed&) {
    // The rest of the step saves nothing that is surveyed.
  }
  tape.drop_frames();
  return std::move(surveyor->found);
}

}  // namespace

Survey survey(const Program& program, const Hardware& hardware) {
  return surveyed(program, hardware, nullptr, nullptr);
}

Survey survey(const Program& program, const Hardware& hardware, const std::vector<PlanSpan>& spans,
              std::shared_ptr<const sim::Prepared> prepared) {
  return surveyed(program, hardware, &spans, std::move(prepared));
}

}  // namespace ferry::plan
