// Pointers, loads and stores (operations.h, lanes.h).
//
// An element that a load's mask leaves out has the value of the third operand, or 0. In a slice,
// loads and stores note their ranges and touch nothing.
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/lanes.h"

namespace ferry::vgpu::triton {
namespace {

template <class Bits, class F>
void read_as(const char* from, std::int64_t count, float* into, F f) {
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    into[i] = f(bits);
  }
}

template <class Bits, class F>
void write_as(const float* from, std::int64_t stride, std::int64_t count, char* into, F f) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits bits = f(from[stride * i]);
    std::memcpy(into + i * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
  }
}

void add_pointer(Machine& machine, const Op& op) {
  const Value& a = machine.operand(op, 0);
  const Value& b = machine.operand(op, 1);
  const std::int64_t bytes = bytes_of(machine.type(op.results[0]).pointee);
  if (Value made = ramp_sum(machine.pool(), Elem::kPointer, a, b, bytes); made.exists()) {
    return machine.set_result(op, std::move(made));
  }
  const int shift = std::countr_zero(static_cast<std::uint64_t>(bytes));
  machine.set_result(op, by_whole_number(b.elem(), [&](auto t) {
                       using T = decltype(t);
                       return map<std::uint64_t, std::uint64_t, T>(
                           machine.pool(), Elem::kPointer,
                           [shift](std::uint64_t x, T y) {
                             return x + (static_cast<std::uint64_t>(static_cast<std::int64_t>(y))
                                         << shift);
                           },
                           a, b);
                     }));
}

Value first_values(Machine& machine, const Op& op, Elem elem, const Dims& dims, bool masked) {
  Value made(machine.pool(), elem, dims);
  if (!masked) return made;
  if (op.operands.size() < 3) {
    std::memset(made.as<char>(), 0, static_cast<std::size_t>(made.elements()) * stored_bytes(elem));
    return made;
  }
  // A copy, to write to.
  const Value& other = machine.operand(op, 2);
  Value no(machine.pool(), Elem::kI1, dims);
  std::memset(no.as<char>(), 0, static_cast<std::size_t>(no.elements()));
  return merged(machine.pool(), no, other, other);
}

void load(Machine& machine, const Op& op) {
  const Value mask = mask_of(machine, op, 1);
  const Value& pointers = machine.operand(op, 0);
  const Elem elem = machine.type(op.operands[0]).pointee;
  const std::int64_t bytes = bytes_of(elem);
  const Dims dims = mask.exists() ? joined(pointers.dims(), mask.dims()) : pointers.dims();
  if (machine.is_slice()) {
    return each_segment(machine, op, "reads", bytes, mask, pointers, dims,
                        [&](std::uint64_t address, std::int64_t count, auto...) {
                          machine.memory().reads.add(address,
                                                     static_cast<std::uint64_t>(count * bytes));
                        });
  }
  Dims result = dims;
  if (mask.exists() && op.operands.size() > 2) result = joined(dims, machine.operand(op, 2).dims());
  Value made = first_values(machine, op, elem, result, mask.exists());
  each_segment(machine, op, "reads", bytes, mask, pointers, result,
               [&](std::uint64_t address, std::int64_t count, std::int64_t at, auto...) {
                 read_elements(address, count, elem, made, at);
               });
  machine.set_result(op, made);
}

void store(Machine& machine, const Op& op) {
  const Value mask = mask_of(machine, op, 2);
  const Value& pointers = machine.operand(op, 0);
  const Elem elem = machine.type(op.operands[0]).pointee;
  const std::int64_t bytes = bytes_of(elem);
  Dims dims = mask.exists() ? joined(pointers.dims(), mask.dims()) : pointers.dims();
  if (machine.is_slice()) {
    return each_segment(machine, op, "writes", bytes, mask, pointers, dims,
                        [&](std::uint64_t address, std::int64_t count, auto...) {
                          machine.memory().writes.add(address,
                                                      static_cast<std::uint64_t>(count * bytes));
                        });
  }
  const Value& value = machine.operand(op, 1);
  dims = joined(dims, value.dims());
  each_segment(
      machine, op, "writes", bytes, mask, value, dims,
      [&](std::uint64_t address, std::int64_t count, std::int64_t, std::int64_t at,
          std::int64_t stride) { write_elements(address, count, elem, value, at, stride); });
}

constexpr std::array<Operation, 5> kOperations = {{{"tt.addptr", add_pointer},
                                                   {"tt.load", load},
                                                   {"tt.store", store},
                                                   {"tt.atomic_load", load},
                                                   {"tt.atomic_store", store}}};

}  // namespace

void read_elements(std::uint64_t address, std::int64_t count, Elem elem, Value& into,
                   std::int64_t at) {
  const auto* const from = reinterpret_cast<const char*>(address);
  switch (elem) {
    case Elem::kF16:
      return read_as<std::uint16_t>(from, count, into.as<float>() + at, from_f16);
    case Elem::kBF16:
      return read_as<std::uint16_t>(from, count, into.as<float>() + at, from_bf16);
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
      return read_as<std::uint8_t>(from, count, into.as<float>() + at,
                                   [elem](std::uint8_t bits) { return from_f8(elem, bits); });
    case Elem::kI1:
      for (std::int64_t i = 0; i < count; ++i) {
        into.as<std::uint8_t>()[at + i] = from[i] != 0 ? 1 : 0;
      }
      return;
    default: {
      const std::size_t bytes = stored_bytes(elem);
      std::memcpy(into.as<char>() + static_cast<std::size_t>(at) * bytes, from,
                  static_cast<std::size_t>(count) * bytes);
    }
  }
}

void write_elements(std::uint64_t address, std::int64_t count, Elem elem, const Value& from,
                    std::int64_t at, std::int64_t stride) {
  auto* const into = reinterpret_cast<char*>(address);
  switch (elem) {
    case Elem::kF16:
      return write_as<std::uint16_t>(from.as<float>() + at, stride, count, into, f16_bits);
    case Elem::kBF16:
      return write_as<std::uint16_t>(from.as<float>() + at, stride, count, into, bf16_bits);
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
      return write_as<std::uint8_t>(from.as<float>() + at, stride, count, into,
                                    [elem](float value) { return f8_bits(elem, value); });
    default:
      break;
  }
  const std::size_t bytes = stored_bytes(elem);
  const char* const source = from.as<char>() + static_cast<std::size_t>(at) * bytes;
  if (stride != 0) {
    std::memcpy(into, source, static_cast<std::size_t>(count) * bytes);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(into + static_cast<std::size_t>(i) * bytes, source, bytes);
  }
}

void fail_out_of_bounds(Machine& machine, const Op& op, std::uint64_t address, std::int64_t bytes,
                        std::int64_t count, const char* does) {
  const auto size = static_cast<std::uint64_t>(bytes);
  while (count-- > 1 && machine.memory().contains(address, size)) address += size;
  const Range* const before = machine.memory().before(address);
  std::string where = "where none of its tensors is";
  if (before != nullptr) {
    const std::uint64_t into = address - before->address;
    where = into < before->bytes + before->bytes + 4096
                ? "at byte " + std::to_string(into) + " of a tensor of " +
                      std::to_string(before->bytes) + " bytes"
                : where;
  }
  machine.fail(op, std::string(does) + " " + std::to_string(bytes) +
                       (bytes == 1 ? " byte " : " bytes ") + "out of bounds, " + where);
}

std::span<const Operation> accesses() { return kOperations; }

}  // namespace ferry::vgpu::triton
