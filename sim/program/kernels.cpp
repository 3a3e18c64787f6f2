#include "sim/program/kernels.h"

#include <stdexcept>
#include <utility>

#include "formats/hash.h"
#include "formats/layout.h"
#include "sim/choices/hash.h"

namespace ferry::sim {

template <class Output>
void Kernels::make_outputs(CodeId code, std::size_t index, const Op& op, const Output& output) {
  const std::size_t count = op.out.size();
  const bool last_first = prepared_.codes[code].ops[index].makes_last_first;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = last_first ? count - 1 - i : i;
    output(number) = make_output(op, number);
  }
}

Tensor Kernels::make_output(const Op& op, std::size_t number) {
  const auto& window = prepared_.windows[op.types[number]];
  return make_tensor(machine_.allocate(window->extent.end, machine_.current_stream()), {window, 0},
                     machine_.new_version());
}

std::uint64_t Kernels::run_op(CodeFrame& frame, std::size_t index, const Op& op) {
  make_outputs(frame.code, index, op,
               [&](std::size_t i) -> Tensor& { return frame.at(op.out[i]).tensor; });
  std::uint64_t tag = prepared_.codes[frame.code].ops[index].tag;
  if (ambient.ambient != 0) tag ^= choices::mix_bits(ambient.ambient);
  if (op.random) tag ^= choices::mix_bits(~ambient.random++);
  if (op_log) log_op(op);
  const auto at = [&frame](const std::vector<Slot>& slots) {
    return [&frame, &slots](std::size_t i) -> const Tensor& { return frame.at(slots[i]).tensor; };
  };
  launch(frame.code, index, op, tag, at(op.in), at(op.out));
  return tag;
}

std::vector<Tensor> Kernels::run_again(CodeId code, std::size_t index, const Op& op,
                                       std::uint64_t tag, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs(op.out.size());
  make_outputs(code, index, op, [&](std::size_t i) -> Tensor& { return outputs[i]; });
  const auto at = [](const std::vector<Tensor>& tensors) {
    return [&tensors](std::size_t i) -> const Tensor& { return tensors[i]; };
  };
  launch(code, index, op, tag, at(inputs), at(outputs));
  return outputs;
}

template <class Input, class Output>
void Kernels::launch(CodeId code, std::size_t index, const Op& op, std::uint64_t tag,
                     const Input& input, const Output& output) {
  std::vector<Storage> taken;
  if (prepared_.codes[code].ops[index].takes_memory) taken = take_memory(op, input, output);
  reads_.clear();
  writes_.clear();
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    if (const Tensor& tensor = input(i)) reads_.push_back(range_of(tensor));
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) writes_.push_back(range_of(output(i)));
  for (const std::uint32_t position : op.writes) {
    const Tensor& tensor = input(position);
    if (!tensor) continue;
    writes_.push_back(range_of(tensor));
    ++tensor->version->value;
  }
  machine_.kernel(op.name, tag, reads_, writes_, prepared_.codes[code].ops[index].time);
  while (!taken.empty()) taken.pop_back();  // the last one first
}

template <class Input, class Output>
std::vector<Storage> Kernels::take_memory(const Op& op, const Input& input, const Output& output) {
  const auto layout = [](const Tensor& tensor) {
    return tensor ? &tensor->layout.window->layout : nullptr;
  };
  std::vector<const Layout*> inputs, outputs;
  for (std::size_t i = 0; i < op.in.size(); ++i) inputs.push_back(layout(input(i)));
  for (std::size_t i = 0; i < op.out.size(); ++i) outputs.push_back(layout(output(i)));
  workspaces.make(memory_->workspaces(op.name, inputs), launcher_.launch_thread(), machine_);
  std::vector<Storage> taken;
  for (const std::int64_t step : memory_->temporaries(op.name, inputs, outputs)) {
    if (step < 0) {
      taken[static_cast<std::size_t>(-step) - 1].reset();
    } else {
      taken.push_back(machine_.allocate(step, machine_.current_stream()));
    }
  }
  return taken;
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
  Tensor made =
      make_tensor(base->storage, {prepared_.windows[view.type], base->layout.shift}, base->version);
  made->is_view = true;
  frame.at(view.out).tensor = std::move(made);
}

Tensor Kernels::filled(std::string_view op, TensorLayout layout, StreamId stream) {
  layout.shift += layout.extent().begin;
  const std::int64_t bytes = layout.extent().bytes();
  const Tensor tensor =
      make_tensor(machine_.allocate(bytes, stream), layout, machine_.new_version());
  const Range write = range_of(tensor);
  machine_.kernel(op, fnv1a(op), {}, {&write, 1}, memory_time(bytes));
  return tensor;
}

void Kernels::move(const Tensor& tensor) {
  const Storage from = tensor->storage;
  const Storage to =
      machine_.allocate(from->bytes, machine_.current_stream(), Step::kUser, from->kind);
  machine_.copy_on_device("move", range_of(from), range_of(to), memory_time(2 * from->bytes));
  tensor->storage = to;
}

KernelTime Kernels::memory_time(std::int64_t bytes) const {
  Op op;
  op.read_bytes = bytes;
  return times_.of(op, DType::kF32);
}

}  // namespace ferry::sim
