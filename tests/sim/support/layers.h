// Writes programs of layers and segments by hand: what the tests of checkpoints are written in.
//
// A layer reads an activation of 64 KiB and a small weight, and saves the activation. Kernels of
// forward are named by the tests; those of backward are "grad".
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "formats/program_check.h"
#include "formats/stream_op.h"

namespace ferry::test {

inline constexpr std::int64_t kActivationBytes = 64 << 10;

class Layers {
 public:
  explicit Layers(int weights = 1) {
    big = b.type({kActivationBytes / 2});
    const TypeId small = b.type({64});
    input = b.global(GlobalKind::kInput, big);
    for (int i = 0; i < weights; ++i) w.push_back(b.global(GlobalKind::kParameter, small));
    body_ = b.code(CodeKind::kBody, "Backward");
    const Slot gradient = b.argument(body_);
    const Slot saved = b.saved(body_);
    b.result(body_, b.op(body_, "grad", {gradient, saved}, big));
    b.result(body_, b.op(body_, "grad", {gradient, saved}, small));
  }

  CodeId segment(std::string name = "segment") {
    return b.code(CodeKind::kSegment, std::move(name));
  }
  Slot layer(CodeId id, std::string name, Slot x, int weight = 0) {
    return made(id, std::move(name), x, weight, {x}, false);
  }
  Slot layer_saves_output(CodeId id, std::string name, Slot x) {
    return made(id, std::move(name), x, 0, {}, true);
  }
  // Saves the input and draws: the mask is what it saves.
  Slot dropout(CodeId id, Slot x) {
    Op draw{"draw", {x}, {b.slot(id)}, {big}, {}, 0, 0, 0, 0};
    draw.random = true;
    const Slot mask = draw.out[0];
    b.add(id, std::move(draw));
    const Slot y = made(id, "dropout", x, 0, {mask}, false);
    b.add(id, Free{{mask}});
    return y;
  }
  Slot op(CodeId id, std::string name, Slot x) { return b.op(id, std::move(name), {x}, big); }

  // Adds a call of segment `called` with the arguments `in`; returns its results.
  std::vector<Slot> call(CodeId id, CodeId called, std::vector<Slot> in,
                         Recompute recompute = Recompute::kCheckpoint) {
    Call call{called, std::move(in), {}};
    call.recompute = recompute;
    return call_with(id, call);
  }
  std::vector<Slot> call_with(CodeId id, Call call) {
    for (std::size_t i = 0; i < b.program.codes[call.code].results.size(); ++i) {
      call.out.push_back(b.slot(id));
    }
    b.add(id, call);
    return call.out;
  }
  // Makes a segment of one layer after another, by name.
  CodeId segment_of(std::initializer_list<const char*> names) {
    const CodeId id = segment();
    Slot x = b.argument(id);
    for (const char* name : names) {
      const Slot y = layer(id, name, x);
      b.add(id, Free{{x}});
      x = y;
    }
    b.result(id, x);
    return id;
  }
  // Begins main with an activation that has a graph.
  Slot begin() { return layer(0, "begin", input); }
  void backward(Slot root, bool retain = false) {
    b.add(0, Backward{{root}, {}, {}, retain, false});
  }
  Program take() {
    check_program(b.program, "by hand");
    return b.program;
  }

  Builder b;
  TypeId big = 0;
  Slot input = 0;
  std::vector<Slot> w;

 private:
  Slot made(CodeId id, std::string name, Slot x, int weight, std::vector<Slot> saved,
            bool saves_output) {
    const Slot y = b.slot(id);
    const Slot of = w[static_cast<std::size_t>(weight)];
    const std::uint32_t node = b.node_id();
    b.add(id, MakeNode{"Backward", node, {x, of}, {y}, std::move(saved), body_});
    b.add(id, Op{std::move(name), {x, of}, {y}, {big}, {}, 0, 0, 0, 0});
    if (saves_output) b.add(id, Save{node, {y}});
    return y;
  }

  CodeId body_ = 0;
};

// Counts kernels by name, and at each the activations that are alive.
class Census final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    const bool big = op.range.bytes >= static_cast<std::uint64_t>(kActivationBytes);
    if (op.kind == StreamOpKind::kAlloc && big) peak = std::max(peak, ++alive);
    if (op.kind == StreamOpKind::kFree && big) --alive;
    if (op.kind != StreamOpKind::kKernel) return;
    ++runs[std::string(op.name)];
    alive_at[std::string(op.name)] = alive;
  }
  std::map<std::string, int> runs;
  std::map<std::string, int> alive_at;  // the last kernel of that name
  int alive = 0;
  int peak = 0;
};

}  // namespace ferry::test
