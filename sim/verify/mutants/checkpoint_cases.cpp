// Mutants of checkpoints that random programs cannot tell from the core: what frees memory sooner
// than at the end of its node, what programs cannot say (groups, threads, accesses outside of
// backward), and what a recompute may do. Each case is true where the core does it right.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/gpu/device.h"
#include "sim/program/tape.h"
#include "sim/run/core.h"
#include "sim/verify/mutants/cases.h"
#include "sim/verify/mutants/layers.h"
#include "sim/verify/oracles/errors.h"
#include "sim/verify/trials/try_core.h"

namespace ferry::verify {
namespace {

// Runs the program so that all backwards share a group.
class GroupedRun final : private sim::SegmentRunner, private sim::KernelTimes {
 public:
  GroupedRun(const Program& program, Rules rules)
      : machine_(sim::MachineOptions{}),
        tape_(program, machine_, *this, nullptr),
        checkpointer_(sim::SimDevice(machine_), tape_.autograd(), rules) {
    machine_.add_consumer(&census);
    tape_.set_segments(this);
    {
      const ExecGroupGuard<sim::SimAutograd> guard(tape_.autograd(), std::make_shared<ExecGroup>());
      tape_.run();
    }
    tape_.drop_frames();
    for (const sim::ProgramError& error : tape_.errors()) errors.push_back(error.message);
    recomputes = checkpointer_.statistics().recomputes;
  }
  Census census;
  std::vector<std::string> errors;
  std::int64_t recomputes = 0;

 private:
  void run(std::vector<sim::Value> inputs, CoreCheckpointOptions options, Function function,
           Function forward) override {
    checkpointer_.run(std::move(inputs), std::move(options), std::move(function),
                      std::move(forward));
  }
  std::vector<sim::Value> run_reentrant(
      const std::vector<sim::Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<sim::Value>(std::vector<sim::Value>)> function) override {
    return checkpointer_.run_reentrant(inputs, options, std::move(function));
  }
  sim::Time op_ns(const Op&, DType) const override { return 1; }

  sim::Machine machine_;
  sim::Tape tape_;
  Checkpointer<sim::SimDevice, sim::SimAutograd> checkpointer_;
};

// y1 and y2, of three layers each, are a segment's results.
struct TwoHeads : Layers {
  TwoHeads() {
    const CodeId id = segment();
    const Slot x = b.argument(id);
    for (int head = 0; head < 2; ++head) {
      Slot y = x;
      for (int i = 0; i < 3; ++i) y = layer(id, "layer", y);
      b.result(id, y);
    }
    heads = call(0, id, {begin()});
  }
  std::vector<Slot> heads;
};

bool group_shares_one_recompute(Rules rules) {
  TwoHeads program;
  program.backward(program.heads[0], true);
  program.backward(program.heads[1]);
  const GroupedRun run(program.take(), rules);
  // The layer before the segment is reached by both, and has its own graph.
  return run.errors.empty() && run.recomputes == 1;
}

bool overlapping_backwards_in_a_group_are_refused(Rules rules) {
  TwoHeads program;
  program.backward(program.heads[0], true);
  program.backward(program.heads[0]);
  const GroupedRun run(program.take(), rules);
  return run.errors == std::vector<std::string>{checkpoint_text::twice(true)};
}

// What the group's recompute made for the second head goes with the second head.
bool dropped_graph_frees_what_was_recomputed_for_it(Rules rules) {
  TwoHeads program;
  program.backward(program.heads[0], true);
  program.op(0, "before", program.input);
  program.b.add(0, Free{{program.heads[1]}});
  program.op(0, "after", program.input);
  const GroupedRun run(program.take(), rules);
  const auto& alive = run.census.alive_at;
  // The head, and its layers' inputs, of which one is the segment's. One more: what "before" made.
  return alive.at("after") <= alive.at("before") + 1 - 3;
}

// At the end of a backward that retains the graph: the input, the segment's input and result, the
// gradients that come in and go out.
bool unpacked_tensors_go(Rules rules) {
  Layers program;
  const CodeId id = program.segment_of({"a", "b", "c", "d", "e", "f"});
  program.backward(program.call(0, id, {program.begin()})[0], true);
  Census census;
  sim::SimulationOptions options;
  options.rules = rules;
  options.consumers = {&census};
  sim::simulate(program.take(), test_hardware(), options);
  return census.alive_at.at("grad") <= 6;
}

std::vector<std::string> errors_of(const Program& program, Rules rules) {
  sim::SimulationOptions options;
  options.rules = rules;
  return messages(sim::simulate(program, test_hardware(), options));
}

// A layer whose input has half the size when it runs again, and whose output nobody uses.
Program shrinking() {
  Layers program;
  const CodeId id = program.segment();
  const Slot x = program.b.argument(id);
  const Slot between = program.b.slot(id);
  for (const bool recomputing : {false, true}) {
    program.b.add(id, When{recomputing, 1});
    const TypeId type = recomputing ? program.b.type({kActivationBytes / 4}) : program.big;
    program.b.add(id, Op{"between", {x}, {between}, {type}, {}, 0, 0, 0, 0});
  }
  const Slot y = program.layer(id, "layer", between);
  program.b.add(id, Free{{y}});
  program.b.result(id, program.layer(id, "live", x));
  program.backward(program.call(0, id, {program.begin()})[0]);
  return program.take();
}

bool dead_tensors_are_not_compared(Rules rules) { return errors_of(shrinking(), rules).empty(); }

bool reentrant_refuses_inputs(Rules rules) {
  Layers program;
  const CodeId id = program.segment_of({"a", "b"});
  const Slot y = program.call(0, id, {program.begin()}, Recompute::kReentrant)[0];
  program.b.add(0, Backward{{y}, {program.w[0]}, {program.b.slot(0)}, false, false});
  return errors_of(program.take(), rules) ==
         std::vector<std::string>{checkpoint_text::kReentrantInvalid};
}

// Says in which task and on which thread it is.
struct ToldAutograd : sim::SimAutograd {
  struct Now {
    GraphTaskId task = GraphTaskId::kNone;
    ThreadId thread{};
    std::vector<std::function<void()>> after_task;
  };
  ToldAutograd(sim::SimAutograd autograd, Now& told) : SimAutograd(autograd), now(&told) {}
  GraphTaskId graph_task() const { return now->task; }
  ThreadId thread() const { return now->thread; }
  void after_task(std::function<void()> callback) {
    now->after_task.push_back(std::move(callback));
  }
  Now* now;
};

// One tensor is saved in a segment, and unpacked by hand.
class ByHand final : private sim::KernelTimes {
 public:
  explicit ByHand(Rules rules)
      : program_(Layers().take()),
        machine_(sim::MachineOptions{}),
        tape_(program_, machine_, *this, nullptr),
        autograd_(tape_.autograd(), now),
        checkpointer_(sim::SimDevice(machine_), autograd_, rules) {
    const auto function = [this](const std::vector<sim::Value>& inputs) {
      auto packed = autograd_.hooks().pack(inputs[0].tensor);
      if (!saved_) saved_ = std::move(packed);
    };
    CoreCheckpointOptions options;
    options.early_stop = false;
    checkpointer_.run({tape_.globals()[0]}, options, function, function);
  }
  // Is true if it came back.
  bool unpack() {
    try {
      saved_->unpack();
      return true;
    } catch (const CheckpointError&) {
      return false;
    }
  }
  std::int64_t recomputes() const { return checkpointer_.statistics().recomputes; }
  ToldAutograd::Now now;

 private:
  sim::Time op_ns(const Op&, DType) const override { return 1; }

  const Program program_;
  sim::Machine machine_;
  sim::Tape tape_;
  ToldAutograd autograd_;
  Checkpointer<sim::SimDevice, ToldAutograd> checkpointer_;
  std::unique_ptr<Saved<sim::Tensor>> saved_;
};

bool every_access_outside_of_backward_recomputes(Rules rules) {
  ByHand segment(rules);
  return segment.unpack() && segment.unpack() && segment.recomputes() == 2;
}

bool each_thread_recomputes_for_itself(Rules rules) {
  ByHand segment(rules);
  segment.now.task = GraphTaskId{7};
  const bool first = segment.unpack();
  segment.now.thread = ThreadId{1};
  const bool second = segment.unpack();
  return first && second && segment.recomputes() == 2 && !segment.unpack();
}

}  // namespace

std::map<std::string, MutantCase> checkpoint_cases() {
  return {
      {"rule: thread key", case_of_rules(each_thread_recomputes_for_itself)},
      {"rule: fresh outside", case_of_rules(every_access_outside_of_backward_recomputes)},
      {"rule: group key", case_of_rules(group_shares_one_recompute)},
      {"rule: refuse twice", case_of_rules(overlapping_backwards_in_a_group_are_refused)},
      {"rule: free unpacked", case_of_rules(unpacked_tensors_go)},
      {"rule: free unneeded", case_of_rules(dropped_graph_frees_what_was_recomputed_for_it)},
      {"rule: skip dead", case_of_rules(dead_tensors_are_not_compared)},
      {"rule: refuse reentrant", case_of_rules(reentrant_refuses_inputs)},
  };
}

}  // namespace ferry::verify
