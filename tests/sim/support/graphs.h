// Forwards of any length, for what has to grow with it: chains of stages, and graphs whose
// operators read several others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "sim/choices/draws.h"

namespace ferry::test {

// A stage reads the output of the one before it. Its backward reads that again, its own output, and
// what else the stage made for it (a mask, say).
struct Stage {
  std::int64_t out_bytes = 0;
  std::int64_t more_bytes = 0;  // saved beside its input; 0: nothing
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
};

inline constexpr std::int64_t kLossNs = 1'000;  // forward and backward each

// As many stages, of some MiB and some hundred microseconds each.
inline std::vector<Stage> random_stages(std::size_t count, std::uint64_t seed) {
  choices::Draws draws(31, seed);
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t forward = draws.in(20, 400) * std::int64_t{1'000};
    stages.push_back({.out_bytes = draws.in(10, 40) * (std::int64_t{1} << 20),
                      .forward_ns = forward,
                      .backward_ns = 2 * forward});
  }
  return stages;
}

// Writes the statements of a forward whose every operator has one node.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name, std::int64_t input_bytes) {
    b_.program.name = std::move(name);
    types_.push_back(bytes(input_bytes));
    input_ = b_.global(GlobalKind::kParameter, types_.back());
    forward_ = b_.code(CodeKind::kSegment, "forward");
  }

  // A parameter, so that there is something to go back to.
  Slot input() const { return input_; }

  // Makes an output, and a tensor for backward alone where `more` is not 0.
  Slot op(const std::vector<Slot>& in, const Stage& stage, bool saves_inputs = true,
          bool saves_output = false) {
    const CodeId body = b_.code(CodeKind::kBody, "Backward");
    const Slot gradient = b_.argument(body);
    std::vector<Slot> read = {gradient}, saved, out = {b_.slot(forward_)};
    std::vector<TypeId> made = {bytes(stage.out_bytes)};
    types_.push_back(made.front());
    if (stage.more_bytes > 0) {
      out.push_back(b_.slot(forward_));
      made.push_back(bytes(stage.more_bytes));
      types_.push_back(made.back());
      saved.push_back(out.back());
    }
    if (saves_inputs) std::copy(in.begin(), in.end(), std::back_inserter(saved));
    if (saves_output) saved.push_back(out.front());
    for (std::size_t i = 0; i < saved.size(); ++i) read.push_back(b_.saved(body));
    std::vector<Slot> gradients;
    std::vector<TypeId> types;
    for (const Slot slot : in) {
      gradients.push_back(b_.slot(body));
      types.push_back(types_[slot]);
    }
    b_.add(body, Op{"backward", read, gradients, types, {}, 0, 0, 0, stage.backward_ns});
    for (const Slot slot : gradients) b_.result(body, slot);
    const Slot y = out.front();
    const std::uint32_t node = b_.node_id();
    b_.add(forward_, Op{"forward", in, out, made, {}, 0, 0, 0, stage.forward_ns});
    b_.add(forward_, MakeNode{"Backward", node, in, {y}, {}, body});
    b_.add(forward_, Save{node, saved});
    if (out.size() > 1) free(out.back());
    return y;
  }
  void free(Slot slot) { b_.add(forward_, Free{{slot}}); }
  void enter(const std::string& module) { b_.add(forward_, Module{module, true}); }
  void leave(const std::string& module) { b_.add(forward_, Module{module, false}); }

  // `last`: whose loss it is.
  Program finish(Slot last) {
    const Slot made = op({last}, {.out_bytes = 512, .forward_ns = kLossNs, .backward_ns = kLossNs});
    b_.result(forward_, made);
    const Slot loss = b_.slot(0);
    b_.add(0, Call{forward_, {}, {loss}});
    b_.add(0, Backward{{loss}, {}, {}, false, false});
    return std::move(b_.program);
  }

 private:
  // (Builder looks for an equal layout among all: here there are many.)
  TypeId bytes(std::int64_t bytes) {
    const auto known = std::lower_bound(known_.begin(), known_.end(), std::pair(bytes, TypeId{0}));
    if (known != known_.end() && known->first == bytes) return known->second;
    b_.program.types.push_back(contiguous_layout(DType::kBF16, {bytes / 2}));
    const auto id = static_cast<TypeId>(b_.program.types.size() - 1);
    known_.insert(known, {bytes, id});
    return id;
  }

  Builder b_;
  Slot input_ = 0;
  CodeId forward_ = 0;
  std::vector<TypeId> types_;  // by slot
  std::vector<std::pair<std::int64_t, TypeId>> known_;
};

// `input_bytes`: of what the first stage reads. `modules`: each stage is one.
inline Program chain_of(const std::vector<Stage>& stages, std::int64_t input_bytes, bool modules) {
  GraphBuilder builder("chain-" + std::to_string(stages.size()), input_bytes);
  Slot x = builder.input();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string module = "layers." + std::to_string(i);
    if (modules) builder.enter(module);
    const Slot y = builder.op({x}, stages[i], true, true);
    if (modules) builder.leave(module);
    if (x != builder.input()) builder.free(x);
    x = y;
  }
  return builder.finish(x);
}

// Every operator reads the one before it, and every third on average another of the last 50.
// `modules`: eight operators are one.
inline Program random_graph(std::size_t operators, std::uint64_t seed, bool modules) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  constexpr std::size_t kReach = 50;
  choices::Draws draws(37, seed);
  std::vector<std::vector<std::size_t>> reads(operators);
  std::vector<std::size_t> last(operators, 0);  // reader of an operator
  for (std::size_t i = 1; i < operators; ++i) {
    reads[i].push_back(i - 1);
    const std::size_t reach = std::min(i, kReach);
    const std::size_t other = i - static_cast<std::size_t>(draws.in(1, static_cast<int>(reach)));
    if (draws.one_in(3) && other != i - 1) reads[i].push_back(other);
    for (const std::size_t read : reads[i]) last[read] = i;
  }
  GraphBuilder builder("graph-" + std::to_string(operators), kMiB);
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < operators; ++i) {
    std::vector<Slot> in;
    for (const std::size_t read : reads[i]) in.push_back(slots[read]);
    if (in.empty()) in.push_back(builder.input());
    const std::int64_t forward = draws.in(10, 100) * std::int64_t{1'000};
    const Stage stage{
        .out_bytes = draws.in(2, 8) * kMiB / 2, .forward_ns = forward, .backward_ns = 2 * forward};
    const bool output = draws.one_in(3);
    const std::string module = "blocks." + std::to_string(i / 8);
    if (modules && i % 8 == 0) builder.enter(module);
    slots.push_back(builder.op(in, stage, !output, output));
    for (const std::size_t read : reads[i]) {
      if (last[read] == i) builder.free(slots[read]);
    }
    if (modules && (i % 8 == 7 || i + 1 == operators)) builder.leave(module);
  }
  return builder.finish(slots.back());
}

}  // namespace ferry::test
