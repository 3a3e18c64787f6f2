#include "sim/program/kernels.h"

#include <stdexcept>
#include <utility>

#include "formats/layout.h"
#include "sim/choices/hash.h"

namespace ferry::sim {

void Kernels::run_op(CodeFrame& frame, std::size_t index, const Op& op) {
  const StreamId stream = machine_.current_stream();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const auto& window = prepared_.windows[op.types[i]];
    frame.at(op.out[i]).tensor = make_tensor(machine_.allocate(window->extent.end, stream),
                                             {window, 0}, machine_.new_version());
  }
  reads_.clear();
  writes_.clear();
  for (const Slot slot : op.in) {
    if (const Tensor& tensor = frame.at(slot).tensor) reads_.push_back(range_of(tensor));
  }
  for (const Slot slot : op.out) writes_.push_back(range_of(frame.at(slot).tensor));
  for (const std::uint32_t position : op.writes) {
    const Tensor& tensor = frame.at(op.in[position]).tensor;
    if (!tensor) continue;
    writes_.push_back(range_of(tensor));
    ++tensor->version->value;
  }
  const PreparedCode& prepared = prepared_.codes[frame.code];
  std::uint64_t tag = prepared.tags[index];
  if (ambient.ambient != 0) tag ^= choices::mix_bits(ambient.ambient);
  if (op.random) tag ^= choices::mix_bits(~ambient.random++);
  if (op_log) log_op(op);
  machine_.kernel(op.name, tag, reads_, writes_, prepared.durations[index]);
}

void Kernels::log_op(const Op& op) {
  std::string text = op.name;
  for (const TypeId type : op.types) {
    text += text == op.name ? " ->" : ",";
    for (const std::int64_t size : program_.types[type].shape) text += " " + std::to_string(size);
    text += " " + std::string(name(program_.types[type].dtype));
  }
  op_log->push_back(std::move(text));
}

void Kernels::run_view(CodeFrame& frame, const View& view) {
  const Tensor& base = frame.at(view.of).tensor;
  if (!base) throw std::runtime_error("a view of a slot that holds no tensor");
  // The view's type counts from the storage's start, but a restored base may start later.
  frame.at(view.out).tensor =
      make_tensor(base->storage, {prepared_.windows[view.type], base->layout.shift}, base->version);
}

Tensor Kernels::filled(std::string_view op, TensorLayout layout, StreamId stream) {
  layout.shift += layout.extent().begin;
  const std::int64_t bytes = layout.extent().bytes();
  const Tensor tensor =
      make_tensor(machine_.allocate(bytes, stream), layout, machine_.new_version());
  const Range write = range_of(tensor);
  machine_.kernel(op, hash_of(op), {}, {&write, 1}, memory_ns(bytes));
  return tensor;
}

void Kernels::move(const Tensor& tensor) {
  const Storage from = tensor->storage;
  const Storage to = machine_.allocate(from->bytes, machine_.current_stream());
  machine_.copy_on_device("move", range_of(from), range_of(to), memory_ns(2 * from->bytes));
  tensor->storage = to;
}

Time Kernels::memory_ns(std::int64_t bytes) const {
  Op op;
  op.read_bytes = bytes;
  return times_.op_ns(op, DType::kF32);
}

}  // namespace ferry::sim
