// Constants, numbers of programs, and operations that only rearrange elements (operations.h).
//
// Most of them copy nothing: a value keeps its elements under other axes (value.h).
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

int axis_of(const Op& op) { return std::atoi(op.attributes.at("axis").c_str()); }

// A floating-point number as MLIR prints it: in decimals, or its bits.
double float_number(Elem elem, const std::string& text) {
  if (!text.starts_with("0x")) return std::strtod(text.c_str(), nullptr);
  const auto bits = std::strtoull(text.c_str(), nullptr, 16);
  switch (elem) {
    case Elem::kF64:
      return std::bit_cast<double>(static_cast<std::uint64_t>(bits));
    case Elem::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Elem::kF16:
      return static_cast<double>(from_f16(static_cast<std::uint16_t>(bits)));
    case Elem::kBF16:
      return static_cast<double>(from_bf16(static_cast<std::uint16_t>(bits)));
    default:
      return static_cast<double>(from_f8(elem, static_cast<std::uint8_t>(bits)));
  }
}

void put_number(Value& into, std::int64_t at, const std::string& text) {
  if (is_float(into.elem())) {
    const double number = float_number(into.elem(), text);
    into.elem() == Elem::kF64 ? into.as<double>()[at] = number
                              : into.as<float>()[at] = static_cast<float>(number);
    return;
  }
  std::int64_t number = text == "true" ? 1 : 0;
  if (text != "true" && text != "false") {
    number = text.starts_with("-") ? std::strtoll(text.c_str(), nullptr, 0)
                                   : std::bit_cast<std::int64_t>(static_cast<std::uint64_t>(
                                         std::strtoull(text.c_str(), nullptr, 0)));
  }
  static_cast<void>(by_whole_number(into.elem(), [&](auto t) {
    using T = decltype(t);
    into.as<T>()[at] = static_cast<T>(number);
    return Value();
  }));
}

// Reads "1.0" or, for one number for each element, "[[1, 2], [3, 4]]".
void constant(Machine& machine, const Op& op) {
  const std::string& text = op.attributes.at("value");
  const Type& type = machine.type(op.results[0]);
  if (!text.starts_with("[")) {
    Dims dims;
    dims.rank = 1 + static_cast<int>(type.shape.size());
    for (int i = 0; i < dims.rank; ++i) dims.set(i, 1);
    Value made(machine.pool(), type.elem, dims);
    put_number(made, 0, text);
    return machine.set_result(op, made);
  }
  Value made(machine.pool(), type.elem, dims_of(1, type));
  std::int64_t count = 0;
  std::string number;
  for (const char c : text) {
    if (c != '[' && c != ']' && c != ',' && c != ' ') {
      number += c;
    } else if (!number.empty()) {
      if (count < made.elements()) put_number(made, count, number);
      ++count;
      number.clear();
    }
  }
  if (count != made.elements()) machine.fail(op, "has a constant of another size");
  machine.set_result(op, made);
}

// Any value will do, because the program does not depend on it.
void poison(Machine& machine, const Op& op) {
  const Type& type = machine.type(op.results[0]);
  Dims dims;
  dims.rank = 1 + static_cast<int>(type.shape.size());
  for (int i = 0; i < dims.rank; ++i) dims.set(i, 1);
  Value made(machine.pool(), type.elem, dims);
  std::memset(made.as<char>(), 0, stored_bytes(type.elem));
  machine.set_result(op, made);
}

std::size_t grid_axis(const Op& op) { return static_cast<std::size_t>(op.words.at(0)[0] - 'x'); }

void program_id(Machine& machine, const Op& op) {
  const auto& grid = machine.launch().grid;
  Dims dims;
  dims.set(0, machine.programs());
  Value made(machine.pool(), Elem::kI32, dims);
  std::int64_t below = 1;
  for (std::size_t axis = 0; axis < grid_axis(op); ++axis) below *= grid[axis];
  for (std::int64_t i = 0; i < machine.programs(); ++i) {
    const std::int64_t number = (machine.program() + i) / below % grid[grid_axis(op)];
    made.as<std::int32_t>()[i] = static_cast<std::int32_t>(number);
  }
  machine.set_result(op, made);
}

void number_of_programs(Machine& machine, const Op& op) {
  Value made(machine.pool(), Elem::kI32, Dims());
  *made.as<std::int32_t>() = static_cast<std::int32_t>(machine.launch().grid[grid_axis(op)]);
  machine.set_result(op, made);
}

void make_range(Machine& machine, const Op& op) {
  const int begin = std::atoi(op.attributes.at("start").c_str());
  Ramp ramp{.bases = {begin}};
  ramp.steps[1] = 1;
  const Dims dims = dims_of(1, machine.type(op.results[0]));
  if (dims[1] == 1) ramp.steps[1] = 0;
  machine.set_result(op, Value(machine.pool(), Elem::kI32, dims, ramp));
}

void splat(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  Dims dims = a.dims();
  for (std::size_t i = 0; i < machine.type(op.results[0]).shape.size(); ++i) {
    dims.insert(dims.rank, 1);
  }
  machine.set_result(op, a.with(dims));
}

void unsplat(Machine& machine, const Op& op) {
  Dims dims;
  const Value& a = machine.operand(op, 0);
  dims.set(0, a.dims()[0]);
  machine.set_result(op, a.with(dims));
}

void same(Machine& machine, const Op& op) { machine.set_result(op, machine.operand(op, 0)); }

void expand_dims(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  if (a.ramp() != nullptr) {
    return machine.set_result(op, ramp_expanded(machine.pool(), a, 1 + axis_of(op)));
  }
  Dims dims = a.dims();
  dims.insert(1 + axis_of(op), 1);
  machine.set_result(op, a.with(dims));
}

Value whole(Machine& machine, const Op& op, std::size_t i) {
  return triton::whole(machine.pool(), machine.operand(op, i), machine.type(op.operands[i]).shape);
}

void reshape(Machine& machine, const Op& op) {
  const Value a = whole(machine, op, 0);
  machine.set_result(op, a.with(dims_of(a.dims()[0], machine.type(op.results[0]))));
}

template <class T>
void permute(const Value& a, Value& made, const std::vector<int>& from) {
  const int rank = a.dims().rank;
  std::array<std::int64_t, kMostAxes> strides{};
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= a.dims()[i];
  }
  std::array<std::int64_t, kMostAxes> index{};
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    made.as<T>()[i] = a.as<T>()[at];
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto k = static_cast<std::size_t>(axis);
      const std::int64_t step = strides[static_cast<std::size_t>(from[k])];
      at += step;
      if (++index[k] < made.dims()[axis]) break;
      at -= step * made.dims()[axis];
      index[k] = 0;
    }
  }
}

void transpose(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  std::vector<int> from{0};  // the axis of `a` that each axis of the result is
  const std::string& order = op.attributes.at("order");  // "i32: 1, 0"
  for (std::size_t i = order.find(':') + 1; i < order.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(order[i])) != 0) {
      from.push_back(1 + std::atoi(order.c_str() + i));
      while (i < order.size() && std::isdigit(static_cast<unsigned char>(order[i])) != 0) ++i;
    }
  }
  Dims dims = a.dims();
  for (int i = 0; i < dims.rank; ++i) dims.set(i, a.dims()[from.at(static_cast<std::size_t>(i))]);
  Value made(machine.pool(), a.elem(), dims);
  switch (stored_bytes(a.elem())) {
    case 1:
      permute<std::uint8_t>(a, made, from);
      break;
    case 2:
      permute<std::uint16_t>(a, made, from);
      break;
    case 4:
      permute<std::uint32_t>(a, made, from);
      break;
    default:
      permute<std::uint64_t>(a, made, from);
  }
  machine.set_result(op, made);
}

// Copies elements of `from`, `step` apart and beginning at `begin`, to `into`.
void copy_elements(const Value& from, std::int64_t begin, std::int64_t step, Value& into,
                   std::int64_t to, std::int64_t to_step, std::int64_t count) {
  const std::size_t bytes = stored_bytes(from.elem());
  const char* source = from.as<char>() + static_cast<std::size_t>(begin) * bytes;
  char* target = into.as<char>() + static_cast<std::size_t>(to) * bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(target, source, bytes);
    source += static_cast<std::size_t>(step) * bytes;
    target += static_cast<std::size_t>(to_step) * bytes;
  }
}

// Two tensors become one with a last axis of 2.
void join(Machine& machine, const Op& op) {
  const Value a = whole(machine, op, 0);
  const Value b = whole(machine, op, 1);
  const std::int64_t programs = std::max(a.dims()[0], b.dims()[0]);
  Value made(machine.pool(), a.elem(), dims_of(programs, machine.type(op.results[0])));
  const std::int64_t each = made.elements() / programs / 2;
  for (std::int64_t p = 0; p < programs; ++p) {
    copy_elements(a, a.dims()[0] == 1 ? 0 : p * each, 1, made, 2 * p * each, 2, each);
    copy_elements(b, b.dims()[0] == 1 ? 0 : p * each, 1, made, 2 * p * each + 1, 2, each);
  }
  machine.set_result(op, made);
}

void split(Machine& machine, const Op& op) {
  const Value a = whole(machine, op, 0);
  for (std::size_t half = 0; half < 2; ++half) {
    Value made(machine.pool(), a.elem(), dims_of(a.dims()[0], machine.type(op.results[half])));
    copy_elements(a, static_cast<std::int64_t>(half), 2, made, 0, 1, made.elements());
    machine.set(op.results[half], made);
  }
}

// One tensor behind the other, along the first axis.
void concatenate(Machine& machine, const Op& op) {
  const Value a = whole(machine, op, 0);
  const Value b = whole(machine, op, 1);
  const std::int64_t programs = std::max(a.dims()[0], b.dims()[0]);
  Value made(machine.pool(), a.elem(), dims_of(programs, machine.type(op.results[0])));
  const std::int64_t first = a.elements() / a.dims()[0];
  const std::int64_t second = b.elements() / b.dims()[0];
  for (std::int64_t p = 0; p < programs; ++p) {
    const std::int64_t to = p * (first + second);
    copy_elements(a, a.dims()[0] == 1 ? 0 : p * first, 1, made, to, 1, first);
    copy_elements(b, b.dims()[0] == 1 ? 0 : p * second, 1, made, to + first, 1, second);
  }
  machine.set_result(op, made);
}

constexpr std::array<Operation, 14> kOperations = {{{"arith.constant", constant},
                                                    {"ub.poison", poison},
                                                    {"tt.get_program_id", program_id},
                                                    {"tt.get_num_programs", number_of_programs},
                                                    {"tt.make_range", make_range},
                                                    {"tt.splat", splat},
                                                    {"tt.unsplat", unsplat},
                                                    {"tt.broadcast", same},
                                                    {"tt.expand_dims", expand_dims},
                                                    {"tt.reshape", reshape},
                                                    {"tt.trans", transpose},
                                                    {"tt.join", join},
                                                    {"tt.split", split},
                                                    {"tt.cat", concatenate}}};

}  // namespace

std::span<const Operation> shapes() { return kOperations; }

}  // namespace ferry::vgpu::triton
