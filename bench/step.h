// A training step of about 500 stream operations, for the benchmarks of the whole simulator: layers
// that save their input and a parameter, all of it offloaded and prefetched.
#pragma once

#include <cstdint>

#include "formats/builder.h"
#include "formats/microbatches.h"
#include "scenarios/hardware.h"
#include "shared/seam/options.h"

namespace ferry::bench {

inline Program make_step(int layers) {
  Builder b;
  const TypeId type = b.type({1'000'000});
  const Slot x = b.global(GlobalKind::kInput, type);
  const Slot w = b.global(GlobalKind::kParameter, type);
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const CodeId body = b.code(CodeKind::kBody, "Backward");
  const Slot g = b.argument(body);
  const Slot saved_x = b.saved(body);
  const Slot saved_w = b.saved(body);
  b.result(body, b.op(body, "grad_x", {g, saved_w}, type));
  b.result(body, b.op(body, "grad_w", {g, saved_x}, type));
  Slot current = b.op(forward, "embed", {x, w}, type);
  for (int i = 0; i < layers; ++i) {
    const Slot y = b.slot(forward);
    b.add(forward, MakeNode{"Backward", b.node_id(), {current, w}, {y}, {current, w}, body});
    b.add(forward, Op{"linear", {current, w}, {y}, {type}, {}, 0, 4'000'000, 2'000'000, 0});
    b.add(forward, Free{{current}});
    current = y;
  }
  b.result(forward, current);
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  return std::move(b.program);
}

inline Hardware bench_hardware() {
  Hardware hardware;
  hardware.name = "bench";
  hardware.memory_bytes = std::int64_t{1} << 40;
  hardware.host_memory_bytes = std::int64_t{1} << 40;
  hardware.flops_per_us.fill(100'000'000);
  hardware.memory_bytes_per_us = 1'000'000;
  hardware.kernel_min_ns = 2'000;
  hardware.launch_ns = 2'000;
  hardware.link = {25'000, 25'000, 12'000, 24'000, 5'000};
  return hardware;
}

inline CoreOptions bench_options() {
  CoreOptions options;
  options.window_bytes = 16 << 20;
  options.prefetch_bytes = 16 << 20;
  return options;
}

}  // namespace ferry::bench
