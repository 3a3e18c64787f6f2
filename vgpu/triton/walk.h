// Element-wise work on values whose axes may be 1 (value.h).
//
// A Walk goes over the elements of a result in order. It joins axes that all operands cross alike,
// and calls for each run of the innermost axis, along which an operand has either one element for
// all or one for each. So the loops below are plain loops that compilers vectorise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vgpu/triton/value.h"

namespace ferry::vgpu::triton {

template <std::size_t kOperands>
class Walk {
 public:
  using Offsets = std::array<std::int64_t, kOperands>;

  Walk(const Dims& result, const std::array<Dims, kOperands>& operands) {
    Offsets next;  // the stride of the next longer axis
    next.fill(1);
    for (int axis = result.rank - 1; axis >= 0; --axis) {
      const std::int64_t length = result[axis];
      if (length == 0) is_empty_ = true;
      if (length == 1) continue;
      Offsets strides;
      for (std::size_t i = 0; i < kOperands; ++i) {
        strides[i] = operands[i][axis] == 1 ? 0 : next[i];
        next[i] *= operands[i][axis];
      }
      add(length, strides);
    }
  }

  // Calls each(offset in the result, offsets in the operands, elements, strides). A stride is 0 or
  // 1.
  template <class Each>
  void runs(Each&& each) const {
    if (is_empty_) return;
    const std::int64_t inner = rank_ > 0 ? lengths_[0] : 1;
    const Offsets strides = rank_ > 0 ? strides_[0] : Offsets{};
    std::array<std::int64_t, kMostAxes> index{};
    Offsets offsets{};
    for (std::int64_t offset = 0;; offset += inner) {
      each(offset, offsets, inner, strides);
      std::size_t axis = 1;
      for (; axis < rank_; ++axis) {
        for (std::size_t i = 0; i < kOperands; ++i) offsets[i] += strides_[axis][i];
        if (++index[axis] < lengths_[axis]) break;
        for (std::size_t i = 0; i < kOperands; ++i) {
          offsets[i] -= strides_[axis][i] * lengths_[axis];
        }
        index[axis] = 0;
      }
      if (axis >= rank_) return;
    }
  }

 private:
  // Axes come from the innermost to the outermost. The innermost may have strides other than 0 and
  // 1 only if it is no axis of the operand, which cannot be: an operand is contiguous.
  void add(std::int64_t length, const Offsets& strides) {
    if (rank_ > 0) {
      bool joins = true;
      for (std::size_t i = 0; i < kOperands; ++i) {
        joins = joins && strides[i] == strides_[rank_ - 1][i] * lengths_[rank_ - 1];
      }
      if (joins) {
        lengths_[rank_ - 1] *= length;
        return;
      }
    }
    lengths_[rank_] = length;
    strides_[rank_++] = strides;
  }

  std::size_t rank_ = 0;
  bool is_empty_ = false;
  std::array<std::int64_t, kMostAxes> lengths_{};
  std::array<Offsets, kMostAxes> strides_{};
};

template <class Out, class A, class F>
Value map(Pool& pool, Elem elem, F&& f, const Value& a) {
  Value made(pool, elem, a.dims());
  Out* const out = made.as<Out>();
  const A* const from = a.as<A>();
  const std::int64_t count = made.elements();
  for (std::int64_t i = 0; i < count; ++i) out[i] = f(from[i]);
  return made;
}

template <class Out, class A, class B, class F>
Value map(Pool& pool, Elem elem, F&& f, const Value& a, const Value& b) {
  const Dims dims = joined(a.dims(), b.dims());
  Value made(pool, elem, dims);
  Walk<2>(dims, {a.dims(), b.dims()}).runs([&](auto offset, auto& at, auto count, auto& strides) {
    Out* const out = made.as<Out>() + offset;
    const A* const x = a.as<A>() + at[0];
    const B* const y = b.as<B>() + at[1];
    if (strides[0] != 0 && strides[1] != 0) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = f(x[i], y[i]);
    } else if (strides[0] != 0) {
      const B same = *y;
      for (std::int64_t i = 0; i < count; ++i) out[i] = f(x[i], same);
    } else {
      const A same = *x;
      for (std::int64_t i = 0; i < count; ++i) out[i] = f(same, y[strides[1] * i]);
    }
  });
  return made;
}

template <class Out, class A, class B, class C, class F>
Value map(Pool& pool, Elem elem, F&& f, const Value& a, const Value& b, const Value& c) {
  const Dims dims = joined(joined(a.dims(), b.dims()), c.dims());
  Value made(pool, elem, dims);
  Walk<3>(dims, {a.dims(), b.dims(), c.dims()})
      .runs([&](auto offset, auto& at, auto count, auto& strides) {
        Out* const out = made.as<Out>() + offset;
        const A* const x = a.as<A>() + at[0];
        const B* const y = b.as<B>() + at[1];
        const C* const z = c.as<C>() + at[2];
        if (strides[0] != 0 && strides[1] != 0 && strides[2] != 0) {
          for (std::int64_t i = 0; i < count; ++i) out[i] = f(x[i], y[i], z[i]);
          return;
        }
        for (std::int64_t i = 0; i < count; ++i) {
          out[i] = f(x[strides[0] * i], y[strides[1] * i], z[strides[2] * i]);
        }
      });
  return made;
}

}  // namespace ferry::vgpu::triton
