// Operations along an axis: reductions, scans, histograms and gathering (operations.h).
//
// A reduction combines the first half of the axis with the second, and goes on with the result. So
// sums are added as a tree, in an order that is the same in each run; a GPU has another. The
// combiner is a region, which is executed on whole halves. The frequent combiners, of one
// operation, have a loop of their own that gives the same result.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

int axis_of(const Op& op) { return 1 + std::atoi(op.attributes.at("axis").c_str()); }

// A value as rows before the axis, the axis, and elements behind it.
struct Rows {
  Rows(const Value& value, int axis) : length(value.dims()[axis]) {
    for (int i = 0; i < axis; ++i) rows *= value.dims()[i];
    for (int i = axis + 1; i < value.dims().rank; ++i) inner *= value.dims()[i];
  }
  std::int64_t rows = 1;
  std::int64_t length;
  std::int64_t inner = 1;
};

// The elements begin, begin + 1, … of the axis.
Value part(Pool& pool, const Value& value, int axis, std::int64_t begin, std::int64_t count) {
  const Rows from(value, axis);
  Dims dims = value.dims();
  dims.set(axis, count);
  Value made(pool, value.elem(), dims);
  const std::size_t bytes = stored_bytes(value.elem()) * static_cast<std::size_t>(from.inner);
  for (std::int64_t row = 0; row < from.rows; ++row) {
    std::memcpy(made.as<char>() + static_cast<std::size_t>(row * count) * bytes,
                value.as<char>() + static_cast<std::size_t>(row * from.length + begin) * bytes,
                static_cast<std::size_t>(count) * bytes);
  }
  return made;
}

// Writes `from` to the elements begin, begin + 1, … of the axis of `into`.
void put_part(const Value& from, int axis, std::int64_t begin, Value& into) {
  const Rows to(into, axis);
  const Rows of(from, axis);
  const std::size_t bytes = stored_bytes(into.elem()) * static_cast<std::size_t>(to.inner);
  for (std::int64_t row = 0; row < to.rows; ++row) {
    std::memcpy(into.as<char>() + static_cast<std::size_t>(row * to.length + begin) * bytes,
                from.as<char>() + static_cast<std::size_t>(row * of.length) * bytes,
                static_cast<std::size_t>(of.length) * bytes);
  }
}

Value reversed(Pool& pool, const Value& value, int axis) {
  Value made(pool, value.elem(), value.dims());
  for (std::int64_t i = 0; i < value.dims()[axis]; ++i) {
    put_part(part(pool, value, axis, i, 1), axis, value.dims()[axis] - 1 - i, made);
  }
  return made;
}

// The operands with the axis, and with each other's axes, at their full length.
std::vector<Value> operands(Machine& machine, const Op& op, int axis) {
  Dims dims;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    dims = joined(dims, machine.operand(op, i).dims());
  }
  dims.set(axis, machine.type(op.operands[0]).shape[static_cast<std::size_t>(axis - 1)]);
  std::vector<Value> values;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    values.push_back(spread(machine.pool(), machine.operand(op, i), dims));
  }
  return values;
}

// The name of the only operation of the combiner, if it combines the two arguments in order.
std::string only_operation(const Region& region) {
  if (region.blocks.size() != 1) return "";
  const BasicBlock& block = region.blocks[0];
  const bool is_only = block.ops.size() == 2 && block.arguments.size() == 2 &&
                       block.ops[0].operands == block.arguments &&
                       block.ops[1].operands == block.ops[0].results;
  return is_only ? block.ops[0].name : "";
}

template <class T, class F>
Value reduced(Pool& pool, const Value& a, int axis, F f) {
  const Rows from(a, axis);
  Dims dims = a.dims();
  dims.erase(axis);
  Value made(pool, a.elem(), dims);
  Dims half;
  half.set(0, std::max(from.length / 2, std::int64_t{1}) * from.inner);
  Value scratch(pool, a.elem(), half);
  T* const t = scratch.as<T>();
  for (std::int64_t row = 0; row < from.rows; ++row) {
    const T* x = a.as<T>() + row * from.length * from.inner;
    for (std::int64_t length = from.length / 2; length > 0; length /= 2) {
      const std::int64_t count = length * from.inner;
      for (std::int64_t i = 0; i < count; ++i) t[i] = f(x[i], x[count + i]);
      x = t;
    }
    std::copy_n(x, from.inner, made.as<T>() + row * from.inner);
  }
  return made;
}

// Reduces by one of the frequent combiners. Returns nothing if the combiner is another.
Value reduced_by(Pool& pool, const std::string& name, const Value& a, int axis) {
  const auto floats = [&](auto f) {
    return by_float(a.elem(), [&](auto t, auto rounds) {
      using T = decltype(t);
      return reduced<T>(pool, a, axis, [=](T x, T y) { return rounds(f(x, y)); });
    });
  };
  const auto whole_numbers = [&](auto f) {
    return by_whole_number(a.elem(), [&](auto t) {
      using T = decltype(t);
      return reduced<T>(pool, a, axis, [=](T x, T y) { return static_cast<T>(f(x, y)); });
    });
  };
  if (name == "arith.addf") return floats(std::plus<>());
  if (name == "arith.maxnumf") {
    return floats([](auto x, auto y) { return x >= y || y != y ? x : y; });
  }
  if (name == "arith.minnumf") {
    return floats([](auto x, auto y) { return x <= y || y != y ? x : y; });
  }
  if (a.elem() == Elem::kI1) return {};
  if (name == "arith.addi") {
    return whole_numbers([](auto x, auto y) {
      using U = Wide<decltype(x)>;
      return static_cast<U>(x) + static_cast<U>(y);
    });
  }
  if (name == "arith.maxsi") return whole_numbers([](auto x, auto y) { return x > y ? x : y; });
  if (name == "arith.minsi") return whole_numbers([](auto x, auto y) { return x < y ? x : y; });
  if (name == "arith.xori") return whole_numbers([](auto x, auto y) { return x ^ y; });
  return {};
}

std::vector<Value> combine(Machine& machine, const Op& op, std::vector<Value> first,
                           const std::vector<Value>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return machine.execute(op.regions[0], first);
}

std::vector<Value> parts(Machine& machine, const std::vector<Value>& values, int axis,
                         std::int64_t begin, std::int64_t count) {
  std::vector<Value> made;
  for (const Value& value : values) {
    made.push_back(part(machine.pool(), value, axis, begin, count));
  }
  return made;
}

void reduce(Machine& machine, const Op& op) {
  const int axis = axis_of(op);
  std::vector<Value> values = operands(machine, op, axis);
  if (values.size() == 1) {
    Value made = reduced_by(machine.pool(), only_operation(op.regions[0]), values[0], axis);
    if (made.exists()) return machine.set_result(op, made);
  }
  for (std::int64_t length = values[0].dims()[axis] / 2; length > 0; length /= 2) {
    values = combine(machine, op, parts(machine, values, axis, 0, length),
                     parts(machine, values, axis, length, length));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    Dims dims = values[i].dims();
    dims.erase(axis);
    machine.set(op.results[i], values[i].with(dims));
  }
}

// Each element becomes the combination of all before it and itself: of 2 elements, then 4, then 8.
void scan(Machine& machine, const Op& op) {
  Pool& pool = machine.pool();
  const int axis = axis_of(op);
  const auto found = op.attributes.find("reverse");
  const bool reverse = found != op.attributes.end() && found->second == "true";
  std::vector<Value> values = operands(machine, op, axis);
  for (Value& value : values) {
    value = reverse ? reversed(pool, value, axis)
                    : part(pool, value, axis, 0, value.dims()[axis]);  // a copy, to write to
  }
  const std::int64_t length = values[0].dims()[axis];
  for (std::int64_t apart = 1; apart < length; apart *= 2) {
    const std::vector<Value> made =
        combine(machine, op, parts(machine, values, axis, 0, length - apart),
                parts(machine, values, axis, apart, length - apart));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Dims dims = values[i].dims();
      dims.set(axis, length - apart);
      put_part(spread(pool, made[i], dims), axis, apart, values[i]);
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    machine.set(op.results[i], reverse ? reversed(pool, values[i], axis) : values[i]);
  }
}

// Counts how often each number from 0 to the result's length occurs; others are not counted.
void histogram(Machine& machine, const Op& op) {
  const Value a = whole(machine.pool(), machine.operand(op, 0), machine.type(op.operands[0]).shape);
  Value mask;
  if (op.operands.size() > 1) {
    mask = whole(machine.pool(), machine.operand(op, 1), machine.type(op.operands[1]).shape);
  }
  const std::int64_t programs = std::max(a.dims()[0], mask.exists() ? mask.dims()[0] : 1);
  Value made(machine.pool(), Elem::kI32, dims_of(programs, machine.type(op.results[0])));
  std::fill_n(made.as<std::int32_t>(), made.elements(), 0);
  const std::int64_t each = a.elements() / a.dims()[0];
  const std::int64_t bins = made.elements() / programs;
  for (std::int64_t i = 0; i < programs * each; ++i) {
    const std::int64_t bin = a.as<std::int32_t>()[a.dims()[0] == 1 ? i % each : i];
    const bool counts =
        !mask.exists() || mask.as<std::uint8_t>()[mask.dims()[0] == 1 ? i % each : i] != 0;
    if (counts && bin >= 0 && bin < bins) ++made.as<std::int32_t>()[i / each * bins + bin];
  }
  machine.set_result(op, made);
}

// Takes the element at each index of the axis. An index beyond the axis counts from its begin.
void gather(Machine& machine, const Op& op) {
  Pool& pool = machine.pool();
  const int axis = axis_of(op);
  const Value a = whole(pool, machine.operand(op, 0), machine.type(op.operands[0]).shape);
  const Value index = whole(pool, machine.operand(op, 1), machine.type(op.operands[1]).shape);
  const std::int64_t programs = std::max(a.dims()[0], index.dims()[0]);
  Value made(pool, a.elem(), dims_of(programs, machine.type(op.results[0])));
  const Rows from(a, axis);
  const Rows to(made, axis);
  const std::size_t bytes = stored_bytes(a.elem());
  const bool is_long = index.elem() == Elem::kI64;
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    const std::int64_t at = index.dims()[0] == 1 ? i % index.elements() : i;
    const std::int64_t wanted =
        is_long ? index.as<std::int64_t>()[at] : index.as<std::int32_t>()[at];
    const std::int64_t position = (wanted % from.length + from.length) % from.length;
    const std::int64_t row = i / to.inner / to.length % from.rows;
    const std::int64_t source = (row * from.length + position) * from.inner + i % to.inner;
    std::memcpy(made.as<char>() + static_cast<std::size_t>(i) * bytes,
                a.as<char>() + static_cast<std::size_t>(source) * bytes, bytes);
  }
  machine.set_result(op, made);
}

constexpr std::array<Operation, 4> kOperations = {
    {{"tt.reduce", reduce}, {"tt.scan", scan}, {"tt.histogram", histogram}, {"tt.gather", gather}}};

}  // namespace

std::span<const Operation> reductions() { return kOperations; }

}  // namespace ferry::vgpu::triton
