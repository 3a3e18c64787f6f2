// The elements that a load, a store or an atomic operation touches, in order.
//
// Neighbours in a tensor are mostly neighbours in memory. So each_segment() hands out the longest
// runs of elements that are, after checking that they lie in the launch's memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "vgpu/triton/machine.h"
#include "vgpu/triton/operations.h"
#include "vgpu/triton/walk.h"

namespace ferry::vgpu::triton {

[[noreturn]] void fail_out_of_bounds(Machine& machine, const Op& op, std::uint64_t address,
                                     std::int64_t bytes, std::int64_t count, const char* does);

// The mask of an operation and the active programs; it does not exist if all elements are touched.
inline Value mask_of(Machine& machine, const Op& op, std::size_t operand) {
  Value mask = op.operands.size() > operand ? machine.operand(op, operand) : Value();
  if (mask.exists() && all(mask)) mask = Value();
  return both(machine.pool(), machine.active(), mask);
}

// Returns whether all of these elements are touched, and each is behind the one before in memory.
inline bool is_one_segment(const std::int64_t* addresses, std::int64_t count, std::int64_t bytes,
                           const std::uint8_t* flags, std::int64_t flag_stride) {
  if (addresses[count - 1] != addresses[0] + (count - 1) * bytes) return false;
  if (flags != nullptr) {
    const std::int64_t flag_count = flag_stride == 0 ? 1 : count;
    if (std::memchr(flags, 0, static_cast<std::size_t>(flag_count)) != nullptr) return false;
  }
  std::int64_t differs = 0;
  for (std::int64_t i = 1; i < count; ++i) differs |= (addresses[i] - addresses[i - 1]) ^ bytes;
  return differs == 0;
}

// Calls each(address, count, place in the result, place in `value`, stride in `value`). An element
// has `bytes`. `value` gives the elements that are written, and may be the pointers themselves.
template <class Each>
void each_segment(Machine& machine, const Op& op, const char* does, std::int64_t bytes,
                  const Value& mask, const Value& value, const Dims& dims, Each&& each) {
  const Value& pointers = machine.operand(op, 0);
  const bool masks = mask.exists();
  const Dims mask_dims = masks ? mask.dims() : Dims();
  const std::uint8_t* const flags = masks ? mask.as<std::uint8_t>() : nullptr;
  Memory& memory = machine.memory();
  Walk<3>(dims, {pointers.dims(), mask_dims, value.dims()})
      .runs([&](std::int64_t offset, auto& at, std::int64_t count, auto& strides) {
        const auto* const addresses = pointers.as<std::int64_t>() + at[0];
        const std::uint8_t* const flags_here = masks ? flags + at[1] : nullptr;
        const bool is_whole =
            strides[0] != 0 && is_one_segment(addresses, count, bytes, flags_here, strides[1]);
        for (std::int64_t i = 0; i < count;) {
          if (masks && flags[at[1] + strides[1] * i] == 0) {
            ++i;
            continue;
          }
          const std::int64_t begin = i;
          const std::int64_t address = addresses[strides[0] * i];
          i = is_whole ? count : i + 1;
          for (; i < count && strides[0] != 0; ++i) {
            if (masks && flags[at[1] + strides[1] * i] == 0) break;
            if (addresses[i] != addresses[i - 1] + bytes) break;
          }
          const auto first = static_cast<std::uint64_t>(address);
          if (!memory.contains(first, static_cast<std::uint64_t>((i - begin) * bytes))) {
            fail_out_of_bounds(machine, op, first, bytes, i - begin, does);
          }
          each(first, i - begin, offset + begin, at[2] + strides[2] * begin, strides[2]);
        }
      });
}

// Copies elements from memory to a value and back.
void read_elements(std::uint64_t address, std::int64_t count, Elem elem, Value& into,
                   std::int64_t at);
void write_elements(std::uint64_t address, std::int64_t count, Elem elem, const Value& from,
                    std::int64_t at, std::int64_t stride);

}  // namespace ferry::vgpu::triton
