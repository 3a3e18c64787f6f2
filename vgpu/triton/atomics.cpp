// Atomic operations (operations.h), one element after the other, in the order of the programs.
//
// Each program executes one, even if all programs' operands are the same. The judge sees an atomic
// operation as a read and a write. A compare-and-swap compares bits.
#include <array>
#include <cstring>
#include <string>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/lanes.h"

namespace ferry::vgpu::triton {
namespace {

// Which programs and elements take part.
Dims all_programs(const Machine& machine, const Dims& dims) {
  Dims made = dims;
  made.set(0, machine.programs());
  return made;
}

void note_both(Machine& machine, const Op& op, const Value& mask, const Dims& dims) {
  const std::int64_t bytes = bytes_of(machine.type(op.operands[0]).pointee);
  each_segment(machine, op, "writes", bytes, mask, machine.operand(op, 0), dims,
               [&](std::uint64_t address, std::int64_t count, auto...) {
                 const auto size = static_cast<std::uint64_t>(count * bytes);
                 machine.memory().reads.add(address, size);
                 machine.memory().writes.add(address, size);
               });
}

template <class T>
T combined(const std::string& kind, T old, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return kind == "exch" ? value : old + value;
  } else {
    using U = Unsigned<T>;
    const auto x = static_cast<U>(old);
    const auto y = static_cast<U>(value);
    if (kind == "exch") return value;
    if (kind == "add") return static_cast<T>(Wide<T>(x) + Wide<T>(y));
    if (kind == "and") return static_cast<T>(x & y);
    if (kind == "or") return static_cast<T>(x | y);
    if (kind == "xor") return static_cast<T>(x ^ y);
    if (kind == "max") return old > value ? old : value;
    if (kind == "min") return old < value ? old : value;
    if (kind == "umax") return x > y ? old : value;
    return x < y ? old : value;
  }
}

// Combines the element at `address`, of the type that is stored as T, and returns what it was.
template <class T>
T combine(Machine& machine, const Op& op, std::uint64_t address, Elem elem, T value) {
  Value cell(machine.pool(), elem, Dims());
  read_elements(address, 1, elem, cell, 0);
  const T old = *cell.as<T>();
  *cell.as<T>() = combined(op.words[0], old, value);
  write_elements(address, 1, elem, cell, 0, 1);  // rounds
  return old;
}

template <class T>
void run_rmw(Machine& machine, const Op& op, Elem elem, const Value& mask, const Dims& dims) {
  const Value& value = machine.operand(op, 1);
  Value made(machine.pool(), elem, dims);
  std::memset(made.as<char>(), 0, static_cast<std::size_t>(made.elements()) * sizeof(T));
  each_segment(machine, op, "writes", bytes_of(elem), mask, value, dims,
               [&](std::uint64_t address, std::int64_t count, std::int64_t at, std::int64_t from,
                   std::int64_t stride) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   const auto next = address + static_cast<std::uint64_t>(i * bytes_of(elem));
                   made.as<T>()[at + i] =
                       combine<T>(machine, op, next, elem, value.as<T>()[from + stride * i]);
                 }
               });
  machine.set_result(op, made);
}

void read_modify_write(Machine& machine, const Op& op) {
  const Value mask = mask_of(machine, op, 2);
  Dims dims = machine.operand(op, 0).dims();
  if (mask.exists()) dims = joined(dims, mask.dims());
  dims = all_programs(machine, dims);
  if (machine.is_slice()) return note_both(machine, op, mask, dims);
  dims = all_programs(machine, joined(dims, machine.operand(op, 1).dims()));
  const Elem elem = machine.type(op.operands[0]).pointee;
  if (elem == Elem::kF64) return run_rmw<double>(machine, op, elem, mask, dims);
  if (is_float(elem)) return run_rmw<float>(machine, op, elem, mask, dims);
  static_cast<void>(by_whole_number(elem, [&](auto t) {
    run_rmw<decltype(t)>(machine, op, elem, mask, dims);
    return Value();
  }));
}

void compare_and_swap(Machine& machine, const Op& op) {
  const Value mask = machine.active();
  const Elem elem = machine.type(op.operands[0]).pointee;
  const Dims dims = all_programs(machine, machine.operand(op, 0).dims());
  if (machine.is_slice()) return note_both(machine, op, mask, dims);
  const Value expected = spread(machine.pool(), machine.operand(op, 1), dims);
  const Value next = spread(machine.pool(), machine.operand(op, 2), dims);
  const auto bytes = static_cast<std::size_t>(bytes_of(elem));
  Value made(machine.pool(), elem, dims);
  std::memset(made.as<char>(), 0, static_cast<std::size_t>(made.elements()) * stored_bytes(elem));
  each_segment(
      machine, op, "writes", bytes_of(elem), mask, expected, dims,
      [&](std::uint64_t address, std::int64_t count, std::int64_t at, auto...) {
        Value cell(machine.pool(), elem, Dims());
        for (std::int64_t i = at; i < at + count; ++i, address += bytes) {
          read_elements(address, 1, elem, made, i);
          write_elements(reinterpret_cast<std::uint64_t>(cell.as<char>()), 1, elem, expected, i, 1);
          if (std::memcmp(cell.as<char>(), reinterpret_cast<const char*>(address), bytes) == 0) {
            write_elements(address, 1, elem, next, i, 1);
          }
        }
      });
  machine.set_result(op, made);
}

constexpr std::array<Operation, 2> kOperations = {
    {{"tt.atomic_rmw", read_modify_write}, {"tt.atomic_cas", compare_and_swap}}};

}  // namespace

std::span<const Operation> atomics() { return kOperations; }

}  // namespace ferry::vgpu::triton
