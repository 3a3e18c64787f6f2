// The elements that a load, a store or an atomic operation touches, in order.
//
// Neighbours in a tensor are mostly neighbours in memory. So each_segment() hands out the longest
// runs of elements that are, after checking that they lie in the launch's memory.
#pragma once

#include <algorithm>
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

// Hands out the segments of a row of elements: the mask's runs of ones, cut where the addresses
// jump. `address(i)` is that of an element. `end_of(i, count)` is the first element behind i that
// is not the next in memory.
template <class Address, class EndOf, class Each>
void segments_of_row(Machine& machine, const Op& op, const char* does, std::int64_t bytes,
                     const std::uint8_t* flags, std::int64_t flag_stride, std::int64_t count,
                     Address&& address, EndOf&& end_of, Each&& each) {
  for (std::int64_t i = 0; i < count;) {
    if (flags != nullptr && flags[flag_stride * i] == 0) {
      if (flag_stride == 0) return;
      const void* const next = std::memchr(flags + i, 1, static_cast<std::size_t>(count - i));
      if (next == nullptr) return;
      i = static_cast<const std::uint8_t*>(next) - flags;
    }
    const std::int64_t begin = i;
    i = end_of(i, count);
    if (flags != nullptr && flag_stride != 0) {
      const void* const gap = std::memchr(flags + begin, 0, static_cast<std::size_t>(i - begin));
      if (gap != nullptr) i = static_cast<const std::uint8_t*>(gap) - flags;
    }
    const auto first = static_cast<std::uint64_t>(address(begin));
    if (!machine.memory().contains(first, static_cast<std::uint64_t>((i - begin) * bytes))) {
      fail_out_of_bounds(machine, op, first, bytes, i - begin, does);
    }
    each(first, begin, i - begin);
  }
}

// The address of the element of a ramp at this place of `dims`.
inline std::int64_t ramp_address(const Ramp& ramp, const Dims& dims, std::int64_t place) {
  std::int64_t address = 0;
  for (int axis = dims.rank - 1; axis > 0; --axis) {
    address += place % dims[axis] * ramp.steps[static_cast<std::size_t>(axis)];
    place /= dims[axis];
  }
  return address + ramp.bases[ramp.bases.size() == 1 ? 0 : static_cast<std::size_t>(place)];
}

// Calls each(address, count, place in the result, place in `value`, stride in `value`). An element
// has `bytes`. `value` gives the elements that are written, and may be the pointers themselves.
template <class Each>
void each_segment(Machine& machine, const Op& op, const char* does, std::int64_t bytes,
                  const Value& mask, const Value& value, const Dims& dims, Each&& each) {
  const Value& pointers = machine.operand(op, 0);
  const Ramp* const ramp = pointers.ramp();
  const std::uint8_t* const flags = mask.exists() ? mask.as<std::uint8_t>() : nullptr;
  const Dims mask_dims = mask.exists() ? mask.dims() : Dims();
  // A ramp's rows are walked one by one, without the addresses of their elements.
  const int last = dims.rank - 1;
  const bool by_rows = ramp != nullptr && last > 0 && dims[last] > 1 &&
                       ramp->steps[static_cast<std::size_t>(last)] == bytes;
  const Dims value_dims = &value == &pointers && by_rows ? Dims() : value.dims();
  const auto* const addresses = by_rows ? nullptr : pointers.as<std::int64_t>();
  const Walk<3> walk(dims, {by_rows ? dims : pointers.dims(), mask_dims, value_dims});
  walk.runs([&](std::int64_t offset, auto& at, std::int64_t count, auto& strides) {
    const std::uint8_t* const flags_here = flags == nullptr ? nullptr : flags + at[1];
    const auto hand_out = [&](std::uint64_t first, std::int64_t begin, std::int64_t length) {
      each(first, length, offset + begin, at[2] + strides[2] * begin, strides[2]);
    };
    if (by_rows) {
      const std::int64_t length = dims[last];
      segments_of_row(
          machine, op, does, bytes, flags_here, strides[1], count,
          [&](std::int64_t i) { return ramp_address(*ramp, dims, offset + i); },
          [&](std::int64_t i, std::int64_t end) {
            // Rows that stand one behind the other in memory are one segment.
            std::int64_t stop = std::min(end, i + length - (offset + i) % length);
            while (stop < end && ramp_address(*ramp, dims, offset + stop) ==
                                     ramp_address(*ramp, dims, offset + stop - 1) + bytes) {
              stop = std::min(end, stop + length);
            }
            return stop;
          },
          hand_out);
      return;
    }
    const auto* const here = addresses + at[0];
    const bool is_whole =
        strides[0] != 0 && is_one_segment(here, count, bytes, flags_here, strides[1]);
    segments_of_row(
        machine, op, does, bytes, flags_here, strides[1], count,
        [&](std::int64_t i) { return here[strides[0] * i]; },
        [&](std::int64_t i, std::int64_t end) {
          if (is_whole) return end;
          std::int64_t stop = i + 1;
          while (stop < end && strides[0] != 0 && here[stop] == here[stop - 1] + bytes) ++stop;
          return stop;
        },
        hand_out);
  });
}

// Copies elements from memory to a value and back.
void read_elements(std::uint64_t address, std::int64_t count, Elem elem, Value& into,
                   std::int64_t at);
void write_elements(std::uint64_t address, std::int64_t count, Elem elem, const Value& from,
                    std::int64_t at, std::int64_t stride);

}  // namespace ferry::vgpu::triton
