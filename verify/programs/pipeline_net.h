// The program of a pipeline's trial, with one code for each layer. Each layer reads x, its weight
// and perhaps a skip tensor, and saves them; its backward reads what was saved. There are also
// codes for the loss and for random numbers.
//
// It has no main code: try_pipeline.h calls the codes, in a pipeline or one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "verify/programs/pipeline_trial.h"

namespace ferry::verify {

// Builds the codes when it is constructed.
struct NetProgram {
  explicit NetProgram(const PipelineTrial& trial) {
    const TypeId weight = b.type({64}, DType::kF32);
    std::vector<TypeId> out;
    for (const NetLayer& layer : trial.layers) {
      out.push_back(b.type({kNetSizes[static_cast<std::size_t>(layer.size)]}, DType::kF32));
    }
    input_type = b.type({1024}, DType::kF32);
    ids_type = b.type({512}, DType::kI64);
    for (int i = 0; i < trial.microbatches; ++i) {
      inputs.push_back(b.global(GlobalKind::kInput, input_type));
      if (trial.ids) ids.push_back(b.global(GlobalKind::kInput, ids_type));
    }
    for (std::size_t i = 0; i < trial.layers.size(); ++i) {
      weights.push_back(b.global(GlobalKind::kParameter, weight));
      b.program.globals.back().requires_grad = !trial.layers[i].frozen;
    }
    for (std::size_t i = 0; i < trial.layers.size(); ++i) {
      const int pops = trial.layers[i].pops;
      std::vector<TypeId> in = {i == 0 ? input_type : out[i - 1]};
      if (pops >= 0 && trial.layers[i].uses) in.push_back(out[static_cast<std::size_t>(pops)]);
      const bool own = !carries(trial) || static_cast<int>(i) <= trial.carried;
      if (reads_passenger(trial, i)) {
        in.push_back(trial.ids ? ids_type
                     : own     ? input_type
                               : out[static_cast<std::size_t>(trial.carried)]);
      }
      codes.push_back(layer(i, in, out[i], trial.writes(i)));
    }
    std::vector<TypeId> last = {out.back()};
    if (carries(trial)) last.push_back(out[static_cast<std::size_t>(trial.carried)]);
    loss = layer(codes.size(), last, b.type({1}, DType::kF32));
    noise = b.code(CodeKind::kSegment, "noise");
    Op op;
    op.name = "noise";
    op.out = {b.slot(noise)};
    op.types = {weight};
    op.random = true;
    b.add(noise, std::move(op));
  }

  // Returns true if the second value is finally the output of a layer. The loss then needs a
  // gradient of it as well.
  static bool carries(const PipelineTrial& trial) { return trial.passenger && trial.carried >= 0; }

  static bool reads_passenger(const PipelineTrial& trial, std::size_t layer) {
    return trial.passenger && layer % 2 == 1;
  }

  CodeId layer(std::size_t number, const std::vector<TypeId>& in, TypeId out, bool writes = false) {
    const std::string text = std::to_string(number);
    const CodeId code = b.code(CodeKind::kSegment, "layer" + text);
    const CodeId body = b.code(CodeKind::kBody, "Backward" + text);
    std::vector<Slot> from;
    std::vector<TypeId> types = in;
    for (std::size_t i = 0; i < in.size(); ++i) from.push_back(b.argument(code));
    if (writes) write(code, text, from.front(), in.front());
    if (number < weights.size()) {
      from.push_back(weights[number]);
      types.push_back(b.program.globals[weights[number]].type);
    }
    std::vector<Slot> have = {b.argument(body)};
    for (std::size_t i = 0; i < from.size(); ++i) have.push_back(b.saved(body));
    for (std::size_t i = 0; i < types.size(); ++i) {
      b.result(body, b.op(body, "grad" + text + "." + std::to_string(i), have, types[i]));
    }
    const Slot y = b.slot(code);
    b.add(code, MakeNode{"Backward" + text, b.node_id(), from, {y}, from, body});
    Op op;
    op.name = "layer" + text;
    op.in = from;
    op.out = {y};
    op.types = {out};
    op.read_bytes = 4096;
    b.add(code, std::move(op));
    b.result(code, y);
    return code;
  }

  // Writes the tensor in place. The write has its own node, whose gradient differs from the one it
  // gets.
  void write(CodeId code, const std::string& text, Slot tensor, TypeId type) {
    const CodeId body = b.code(CodeKind::kBody, "Write" + text);
    b.result(body, b.op(body, "gradwrite" + text, {b.argument(body)}, type));
    b.add(code, MakeNode{"Write" + text, b.node_id(), {tensor}, {tensor}, {}, body});
    b.write(code, "write" + text, tensor);
  }

  Builder b;
  TypeId input_type = 0, ids_type = 0;
  std::vector<Slot> inputs;   // by micro-batch
  std::vector<Slot> ids;      // by micro-batch, if the second value is integers
  std::vector<Slot> weights;  // by layer
  std::vector<CodeId> codes;  // by layer
  CodeId loss = 0;
  CodeId noise = 0;  // draws random numbers that nothing reads
};

}  // namespace ferry::verify
