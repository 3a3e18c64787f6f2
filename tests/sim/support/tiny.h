// What the tests of the simulated runs share: a log of operations, a card on which a byte takes a
// nanosecond, and a chain of layers whose times are given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/builder.h"
#include "formats/stream_op.h"
#include "scenarios/hardware.h"
#include "sim/gpu/machine.h"

namespace ferry::test {

struct LoggedOp {
  StreamOpKind kind;
  CopyKind copy;
  Step step;
  StreamId stream;
  EventId event;
  Range range;
  std::vector<Range> reads;
  std::vector<Range> writes;
  std::string name;
  bool until_event;
};

class OpLog final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    ops.push_back({op.kind,
                   op.copy,
                   op.step,
                   op.stream,
                   op.event,
                   op.range,
                   {op.reads.begin(), op.reads.end()},
                   {op.writes.begin(), op.writes.end()},
                   std::string(op.name),
                   op.until_event});
  }
  std::vector<LoggedOp> of(StreamOpKind kind) const {
    std::vector<LoggedOp> found;
    for (const LoggedOp& op : ops) {
      if (op.kind == kind) found.push_back(op);
    }
    return found;
  }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const LoggedOp& op : of(StreamOpKind::kKernel)) names.push_back(op.name);
    return names;
  }

  std::vector<LoggedOp> ops;
};

// A byte a nanosecond, in memory and on the link; launches and latencies take no time.
inline Hardware tiny_hardware() {
  Hardware hardware;
  hardware.name = "tiny";
  hardware.memory_bytes = std::int64_t{1} << 30;
  hardware.host_memory_bytes = std::int64_t{1} << 30;
  hardware.flops_per_us = {1'000, 1'000, 1'000, 1'000};
  hardware.memory_bytes_per_us = 1'000;
  hardware.link = {1'000, 1'000, 1'000, 1'000, 0};
  return hardware;
}

struct ChainShape {
  int layers = 2;
  std::int64_t elements = 1024;      // of every activation but the loss, in bf16
  std::int64_t weight_elements = 0;  // of a weight; 0: as many
  std::int64_t op_ns = 100;          // each layer's op, and each of the two in its backward
  std::int64_t loss_ns = 10;
};

// y[i] = layer(y[i-1], w[i]), with y[-1] the input; each layer saves its input, the loss y.back().
// Globals: the input, then the weights. Main: one call, one backward.
inline Program chain(const ChainShape& shape) {
  Builder b;
  b.program.name = "chain";
  const TypeId type = b.type({shape.elements});
  const TypeId weight_type =
      b.type({shape.weight_elements > 0 ? shape.weight_elements : shape.elements});
  const TypeId scalar = b.type({1}, DType::kF32);
  const Slot input = b.global(GlobalKind::kInput, type);
  std::vector<Slot> weights;
  for (int i = 0; i < shape.layers; ++i) {
    weights.push_back(b.global(GlobalKind::kParameter, weight_type));
  }

  const auto timed = [&b](CodeId id, std::string name, std::vector<Slot> in, Slot out, TypeId of,
                          std::int64_t ns) {
    b.add(id, Op{std::move(name), std::move(in), {out}, {of}, {}, 0, 0, 0, ns});
  };
  const auto layer_body = [&](bool first) {
    const CodeId body = b.code(CodeKind::kBody, "LayerBackward");
    const Slot gradient = b.argument(body);
    const Slot saved = b.saved(body);
    if (first) {
      b.result(body, kNoSlot);
    } else {
      b.result(body, b.slot(body));
      timed(body, "grad_x", {gradient}, b.program.codes[body].results.back(), type, shape.op_ns);
    }
    b.result(body, b.slot(body));
    timed(body, "grad_w", {gradient, saved}, b.program.codes[body].results.back(), weight_type,
          shape.op_ns);
    return body;
  };
  const CodeId first_body = layer_body(true);
  const CodeId body = layer_body(false);
  const CodeId loss_body = b.code(CodeKind::kBody, "LossBackward");
  const Slot one = b.argument(loss_body);
  const Slot saved = b.saved(loss_body);
  b.result(loss_body, b.slot(loss_body));
  timed(loss_body, "grad_loss", {one, saved}, b.program.codes[loss_body].results.back(), type,
        shape.loss_ns);

  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  Slot x = input;
  for (const Slot weight : weights) {
    const Slot y = b.slot(forward);
    b.add(forward,
          MakeNode{
              "LayerBackward", b.node_id(), {x, weight}, {y}, {x}, x == input ? first_body : body});
    timed(forward, "layer", {x, weight}, y, type, shape.op_ns);
    if (x != input) b.add(forward, Free{{x}});
    x = y;
  }
  const Slot loss = b.slot(forward);
  b.add(forward, MakeNode{"LossBackward", b.node_id(), {x}, {loss}, {x}, loss_body});
  timed(forward, "loss", {x}, loss, scalar, shape.loss_ns);
  b.result(forward, loss);

  const Slot total = b.slot(0);
  b.add(0, Call{forward, {}, {total}});
  b.add(0, Backward{{total}, {}, {}, false, false});
  return b.program;
}

}  // namespace ferry::test
