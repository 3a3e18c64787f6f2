// Runs a program without any recompute, under hooks that keep every saved tensor. It records what
// would have been needed to get each tensor back (saved_sources.h): which calls spans would
// recompute, and which tensors would be rejected because they were written since their save.
// versions.h and replays.h compare a run of the core with it.
//
// Not modelled: programs with both segments and calls that are spans, reentrant segments, plans
// with segments that bodies of nodes call, and writes by a segment's function to what it has saved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "verify/oracles/saved_sources.h"

namespace ferry::verify {

class ModelRun final : private sim::KernelTimes, private sim::SegmentRunner {
 public:
  // `spans` are the spans of a plan; calls of the program may be spans as well. `plan` has the
  // segments in each call of main; null: there is none. `prepared` belongs to the program; null: it
  // is made here.
  ModelRun(const Program& program, const std::vector<PlanSpan>& spans, const SegmentPlan* plan,
           std::shared_ptr<const sim::Prepared> prepared = nullptr);

  std::int64_t kernels() const { return kernels_.count; }  // kernels that ran
  std::int64_t again() const { return again_; }            // calls that spans recompute in addition
  const SpanCounts& spans() const { return spans_; }
  const std::vector<sim::ProgramError>& errors() const { return tape_.errors(); }

 private:
  class Kept;
  class Pair;
  // A segment or a span in which tensors are saved.
  struct Level {
    std::shared_ptr<SpanModel> span;
    std::shared_ptr<SegmentModel> segment;
    const SegmentPlan* plan = nullptr;  // of the segment
    std::size_t packs = 0;              // number of packs in the segment so far
  };
  using Levels = std::vector<std::shared_ptr<Level>>;
  // Points to the next segment in a plan.
  struct Cursor {
    const SegmentPlan* plan = nullptr;
    std::size_t next = 0;
  };
  class Kernels final : public StreamOpConsumer {
   public:
    void operator()(const StreamOp& op) override { count += op.kind == StreamOpKind::kKernel; }
    std::int64_t count = 0;
  };

  static SourceRef source_of(const sim::Tensor& tensor, const Levels& levels);
  const SegmentPlan* next_segment();

  void run(std::vector<sim::Value> inputs, CoreCheckpointOptions, Function,
           Function forward) override;
  std::vector<sim::Value> run_reentrant(
      const std::vector<sim::Value>& inputs, const CoreCheckpointOptions&,
      std::function<std::vector<sim::Value>(std::vector<sim::Value>)> function) override {
    return function(inputs);
  }
  void run_span(std::vector<sim::OpListener>& listeners,
                const std::function<void()>& function) override;
  sim::Time op_ns(const Op&, DType) const override { return 1; }

  Kernels kernels_;
  std::int64_t again_ = 0;
  SpanCounts spans_;
  sim::Machine machine_;
  sim::Tape tape_;
  Levels levels_;                // that are running, outermost first
  std::vector<Cursor> cursors_;  // for the running segments, and the call of main
};

}  // namespace ferry::verify
