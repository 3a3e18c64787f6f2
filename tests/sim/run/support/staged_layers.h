// Programs for the tests of pipelines: equal layers in modules, so that each may be a stage, and
// what a step in stages should come to, made without a pipeline.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/stages.h"
#include "formats/statements.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::test {

struct LayersShape {
  int layers = 4;
  std::int64_t elements = 1 << 20;  // of an activation, in bf16
  std::int64_t forward_ns = 1'000'000;
  std::int64_t backward_ns = 2'000'000;
  // So many of the first half of the layers are also read by the layer as far from the end.
  int skips = 0;
};

// y = layer(x, w) and, in the second half, of a skip: each layer saves what it reads, and y. The
// last one's is the loss. Weights are of 64 elements, so that sums take no time.
inline Program staged_layers(const LayersShape& shape) {
  Builder b;
  b.program.name = "layers";
  const TypeId type = b.type({shape.elements});
  const TypeId weight_type = b.type({64});
  const TypeId scalar = b.type({1}, DType::kF32);
  const Slot input = b.global(GlobalKind::kInput, type);
  std::vector<Slot> weights;
  for (int i = 0; i < shape.layers; ++i) {
    weights.push_back(b.global(GlobalKind::kParameter, weight_type));
  }
  const auto timed = [&b](CodeId id, const std::string& name, std::vector<Slot> in,
                          std::vector<Slot> out, std::vector<TypeId> of, std::int64_t ns) {
    b.add(id, Op{name, std::move(in), std::move(out), std::move(of), {}, 0, 0, 0, ns});
  };
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  std::vector<Slot> x = {input};  // of each layer
  for (int i = 0; i < shape.layers; ++i) {
    const std::string number = std::to_string(i);
    const int mirrored = shape.layers - 1 - i;
    const bool pops = mirrored < i && mirrored < shape.skips;
    std::vector<Slot> in = {x.back(), weights[static_cast<std::size_t>(i)]};
    if (pops) in.push_back(x[static_cast<std::size_t>(mirrored) + 1]);
    const CodeId body = b.code(CodeKind::kBody, "Backward" + number);
    std::vector<Slot> have = {b.argument(body)};
    for (std::size_t k = 0; k <= in.size(); ++k) have.push_back(b.saved(body));
    std::vector<Slot> made;
    std::vector<TypeId> types;
    for (std::size_t k = 0; k < in.size(); ++k) {
      made.push_back(b.slot(body));
      types.push_back(k == 1 ? weight_type : type);
      b.result(body, made.back());
    }
    timed(body, "grad" + number, have, made, types, shape.backward_ns);
    const bool last = i + 1 == shape.layers;
    const Slot y = b.slot(forward);
    b.add(forward, Module{"m." + number, true});
    const std::uint32_t node = b.node_id();
    b.add(forward, MakeNode{"Backward" + number, node, in, {y}, in, body});
    timed(forward, "layer" + number, in, {y}, {last ? scalar : type}, shape.forward_ns);
    b.add(forward, Save{node, {y}});
    b.add(forward, Module{"m." + number, false});
    x.push_back(y);
  }
  b.result(forward, x.back());
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  return b.program;
}

// As many layers in each.
inline StagedProgram in_stages(const Program& program, std::size_t stages) {
  const std::size_t units = stage_units(program).size();
  std::vector<std::size_t> first(stages);
  for (std::size_t s = 0; s < stages; ++s) first[s] = s * units / stages;
  return cut_into_stages(program, first);
}

// Its own main code, once for each micro-batch: one after the other, on one GPU.
inline Program one_by_one(const StagedProgram& staged, std::size_t microbatches) {
  Program program = staged.program;
  const auto globals = static_cast<Slot>(program.globals.size());
  const std::vector<Statement> step = program.codes[program.main].statements;
  std::vector<Statement>& main = program.codes[program.main].statements;
  main.clear();
  Slot fresh = globals;  // past every slot of the main code
  for (const Statement& statement : step) {
    for_each_slot(statement.action, [&](Slot slot, Role) {
      if (slot != kNoSlot) fresh = std::max(fresh, slot + 1);
    });
  }
  for (std::size_t i = 0; i < microbatches; ++i) {
    const Slot shift = static_cast<Slot>(i) * (fresh - globals);
    for (Statement statement : step) {
      for_each_slot(statement.action, [&](Slot& slot, Role) {
        if (slot >= globals && slot != kNoSlot) slot += shift;
      });
      main.push_back(std::move(statement));
    }
  }
  return program;
}

// A byte takes next to nothing, and so does a copy.
inline Hardware weightless_hardware() {
  Hardware hardware = tiny_hardware();
  hardware.memory_bytes_per_us = std::int64_t{1} << 40;
  hardware.peer = {std::int64_t{1} << 40, 0};
  return hardware;
}

}  // namespace ferry::test
