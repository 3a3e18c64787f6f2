// What is asked of every run of the core, and who says no: the oracles that kill mutants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/hardware.h"
#include "sim/simulation.h"
#include "tests/support/random_program.h"
#include "tests/support/recompute_model.h"

namespace ferry::test {

// Made up, so that copies and kernels take comparable times, and timing does not hide anything.
inline Hardware test_hardware() {
  Hardware hardware;
  hardware.name = "test";
  hardware.memory_bytes = std::int64_t{1} << 40;
  hardware.host_memory_bytes = std::int64_t{1} << 40;
  hardware.flops_per_us.fill(1'000'000);
  hardware.memory_bytes_per_us = 50'000;
  hardware.kernel_min_ns = 1'000;
  hardware.launch_ns = 500;
  hardware.link = {20'000, 20'000, 10'000, 18'000, 500};
  return hardware;
}

// What moved that should not have: a global's bytes, or bytes of which the host holds a copy
// already.
class MoveWatch final : public sim::StreamOpConsumer {
 public:
  explicit MoveWatch(const Program& program) {
    for (const Global& global : program.globals) globals_left_ += global.alias == kNoSlot ? 1 : 0;
    for (const Global& global : program.globals) {
      if (global.alias == kNoSlot) may_move_.push_back(global.kind == GlobalKind::kInput);
    }
  }
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kAlloc && globals_left_ > 0) {
      const bool may_move = may_move_[may_move_.size() - static_cast<std::size_t>(globals_left_)];
      if (!may_move) globals_.push_back(op.range);
      --globals_left_;
    }
    if (op.kind == StreamOpKind::kFree) {
      forget(op.range);
      std::erase_if(globals_, [&](const Range& global) { return overlap(global, op.range); });
    }
    if (op.name == "move") globals_.push_back(op.writes[0]);
    if (op.kind != StreamOpKind::kKernel && op.kind != StreamOpKind::kCopy) return;
    if (op.step == Step::kOffload) {
      for (const Range& global : globals_) {
        if (overlap(global, op.reads[0])) complaint = "a global moved";
      }
      for (const Copy& copy : copies_) {
        if (copy.from == op.reads[0]) complaint = "the same bytes moved twice";
      }
      copies_.push_back({op.reads[0], op.writes[0]});
      return;
    }
    for (const Range& range : op.writes) forget(range);
  }
  std::string complaint;

 private:
  static bool overlap(const Range& a, const Range& b) {
    return a.address < b.end() && b.address < a.end();
  }
  // Written, or given back: on either side the copy is none any more.
  void forget(const Range& range) {
    std::erase_if(copies_, [&](const Copy& copy) {
      return overlap(copy.from, range) || overlap(copy.to, range);
    });
  }
  struct Copy {
    Range from;
    Range to;
  };
  std::int64_t globals_left_ = 0;
  std::vector<bool> may_move_;
  std::vector<Range> globals_;
  std::vector<Copy> copies_;
};

inline rc::Gen<CoreOptions> any_options() {
  return rc::gen::exec([] {
    const auto pick = [](std::initializer_list<std::int64_t> values) {
      const int index = *in_range(0, static_cast<int>(values.size()));
      return *(values.begin() + index);
    };
    CoreOptions options;
    options.host_memory = *in_range(0, 8) == 0 ? HostMemory::kPageable : HostMemory::kPinned;
    const int streams = *in_range(0, 8);
    options.copy_streams = streams == 0   ? CopyStreams::kNone
                           : streams <= 2 ? CopyStreams::kOne
                                          : CopyStreams::kTwo;
    options.reload_pool = *in_range(0, 2) == 0 ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
    options.bytes_min = pick({0, 1024, 4096});
    options.window_packs = pick({1, 2, 5, kUnlimited});
    options.window_bytes = pick({0, 64 << 10, 4 << 20, kUnlimited});
    options.prefetch_bytes = pick({0, 64 << 10, 8 << 20});
    options.hold_bytes = pick({0, 64 << 10, 8 << 20, kUnlimited});
    if (*in_range(0, 4) == 0) {
      for (int i = 0; i < 60; ++i) options.offload.push_back(*in_range(0, 3) > 0);
    }
    return options;
  });
}

// What a planner could say of the segments of a program, and more: it need not fit.
inline SegmentPlan draw_plan(int depth) {
  SegmentPlan plan;
  plan.checkpoint = *in_range(0, 6) > 0;
  plan.unlisted = *in_range(0, 4) > 0;
  for (int packs = *in_range(0, 12); packs > 0; --packs) {
    plan.choices.push_back(static_cast<SavedChoice>(*in_range(0, 3)));
  }
  for (int segments = depth == 0 ? 0 : *in_range(0, 4); segments > 0; --segments) {
    plan.segments.push_back(draw_plan(depth - 1));
  }
  return plan;
}

inline rc::Gen<std::shared_ptr<const SegmentPlan>> any_plan() {
  return rc::gen::exec([]() -> std::shared_ptr<const SegmentPlan> {
    if (*in_range(0, 2) == 0) return nullptr;
    return std::make_shared<const SegmentPlan>(draw_plan(3));
  });
}

struct Trial {
  Recipe recipe;
  CoreOptions options;
  std::shared_ptr<const SegmentPlan> plan;  // of its segments
};

inline rc::Gen<Trial> any_trial() {
  return rc::gen::build<Trial>(rc::gen::set(&Trial::recipe, any_recipe()),
                               rc::gen::set(&Trial::options, any_options()),
                               rc::gen::set(&Trial::plan, any_plan()));
}

// Whether RecomputeModel knows how often each op runs.
inline bool is_modelled(const Recipe& recipe) {
  const auto strange = [&recipe](const Layer& layer) {
    const bool nested = layer.kind == static_cast<int>(LayerKind::kNested);
    const bool reentrant = (layer.segment & kReentrantBit) != 0 && layer.opens > 0;
    return nested || reentrant || layer.extra >= static_cast<int>(Extra::kInnerBackward);
  };
  return recipe.segments && recipe.failure == 0 &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

// Runs that the rules of nesting do not account for.
inline std::string miscounted(const OpCounts& expected, const OpCounts& counted) {
  for (const auto& [op, times] : expected) {
    const auto found = counted.find(op);
    const std::int64_t ran = found == counted.end() ? 0 : found->second;
    if (ran == times) continue;
    return op + " ran " + std::to_string(ran) + " times, not " + std::to_string(times);
  }
  return "";
}

// The first oracle that says no, and its words.
struct Verdict {
  std::string oracle;
  std::string words;
};

inline std::optional<Verdict> judge_bounds(const CoreOptions& options, const sim::Simulation& run) {
  const std::int64_t largest = 2 * kSizes.back() + 4096;
  const OffloadStatistics& counts = run.statistics;
  if (options.window_bytes != kUnlimited &&
      counts.forward_stash_peak_bytes > std::max(options.window_bytes, largest)) {
    return Verdict{"bound", "the forward stash is beyond its window"};
  }
  if (options.window_packs != kUnlimited &&
      counts.forward_stash_peak_bytes > options.window_packs * largest) {
    return Verdict{"bound", "the forward stash holds more than its window's packs"};
  }
  // Beyond what is prefetched and held: the storage at hand, and in the published way those of one
  // node and the one before it.
  const std::int64_t at_hand = options.reload_pool == ReloadPool::kConsumer ? 2 : 12;
  if (options.hold_bytes != kUnlimited &&
      counts.backward_stash_peak_bytes >
          options.prefetch_bytes + options.hold_bytes + at_hand * largest) {
    return Verdict{"bound", "the backward stash is beyond its bound"};
  }
  return std::nullopt;
}

inline std::vector<std::string> messages(const sim::Simulation& run) {
  std::vector<std::string> texts;
  for (const sim::ProgramError& error : run.errors) texts.push_back(error.message);
  return texts;
}

inline std::optional<Verdict> judge(const Trial& trial, const sim::Simulation& keep,
                                    const sim::Simulation& run, const MoveWatch& watch,
                                    const std::string& miscount) {
  for (const sim::Hazard& hazard : run.hazards) {
    const bool value = hazard.kind == sim::HazardKind::kValue;
    return Verdict{value                       ? "value"
                   : sim::is_race(hazard.kind) ? "happens-before"
                                               : "lifetime",
                   sim::to_string(hazard)};
  }
  if (messages(keep) != messages(run)) {
    return Verdict{"error", run.errors.empty() ? "an error was lost" : run.errors[0].message};
  }
  if (keep.gradients != run.gradients) return Verdict{"value", "a gradient differs from keep's"};
  if (run.leftovers.any()) return Verdict{"leak", "something is left after the step"};
  if (!miscount.empty()) return Verdict{"count", miscount};
  if (!watch.complaint.empty()) return Verdict{"moves", watch.complaint};
  const Recipe& recipe = trial.recipe;
  const bool nests = std::any_of(
      recipe.layers.begin(), recipe.layers.end(),
      [](const Layer& layer) { return layer.kind == static_cast<int>(LayerKind::kNested); });
  const bool one_task = !recipe.segments && recipe.microbatches == 1 && !recipe.retain &&
                        recipe.derivatives == 1 && recipe.failure == 0 && !nests;
  if (one_task && trial.options.hold_bytes == kUnlimited &&
      run.statistics.reloaded_count > run.statistics.offloaded_count) {
    return Verdict{"moves", "a storage was reloaded twice while it could have been held"};
  }
  return judge_bounds(trial.options, run);
}

inline std::optional<Verdict> try_core(const Trial& trial, const Rules& rules = {},
                                       std::optional<Mutation> mutation = {}) {
  const Program program = make_program(trial.recipe);
  const Hardware hardware = test_hardware();
  const sim::Simulation keep = sim::simulate(without_segments(program), hardware, {});
  MoveWatch watch(program);
  OpCounter counter;
  sim::SimulationOptions options;
  options.offload = trial.options;
  options.rules = rules;
  options.mutation = mutation;
  options.segments = trial.plan;
  options.consumers = {&watch, &counter};
  const sim::Simulation run = sim::simulate(program, hardware, options);
  std::string miscount;
  if (is_modelled(trial.recipe)) {
    const RecomputeModel model(program, trial.plan.get());
    miscount = miscounted(model.counts(), counter.counts);
  }
  return judge(trial, keep, run, watch, miscount);
}

inline std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  out << "layers";
  for (const Layer& layer : trial.recipe.layers) {
    out << " {" << layer.kind << "," << layer.size << (layer.hold ? ",hold" : "")
        << (layer.skip ? ",skip" : "");
    if (trial.recipe.segments) {
      out << ",extra " << layer.extra << ",segments " << layer.opens << "-" << layer.closes << "/"
          << layer.segment;
    }
    out << "}";
  }
  const Recipe& recipe = trial.recipe;
  out << " microbatches " << recipe.microbatches << " order " << recipe.order
      << (recipe.retain ? " retain" : "") << " derivatives " << recipe.derivatives << "@"
      << recipe.differentiated << " failure " << recipe.failure << "@" << recipe.failing_layer
      << (recipe.move ? " move" : "") << (recipe.segments ? " segments" : "")
      << (recipe.whole ? " whole" : "") << (trial.plan ? " planned" : "");
  const CoreOptions& options = trial.options;
  out << "; pageable " << (options.host_memory == HostMemory::kPageable) << " streams "
      << static_cast<int>(options.copy_streams) << " pool " << static_cast<int>(options.reload_pool)
      << " min " << options.bytes_min << " window " << options.window_packs << "/"
      << options.window_bytes << " prefetch " << options.prefetch_bytes << " hold "
      << options.hold_bytes << " select " << options.offload.size();
  return out;
}
}  // namespace ferry::test
