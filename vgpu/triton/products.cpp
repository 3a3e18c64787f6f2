// Matrix products (operations.h).
//
// They are computed in single precision, in the order of the inner axis, or in double precision or
// whole numbers if the result has them. A GPU may round single-precision operands to TF32, and adds
// in another order.
#include <algorithm>
#include <array>
#include <vector>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

struct Sizes {
  std::int64_t products;  // in each program
  std::int64_t m, n, k;
};

// c += a * b. Rows of c stay in the cache while b is read once for four of them.
template <class C, class A>
void multiply(const A* a, const A* b, C* c, const Sizes& sizes) {
  constexpr std::int64_t kRows = 4;
  for (std::int64_t row = 0; row < sizes.m; row += kRows) {
    const std::int64_t rows = std::min(kRows, sizes.m - row);
    for (std::int64_t k = 0; k < sizes.k; ++k) {
      const A* const from = b + k * sizes.n;
      const A* const factors = a + row * sizes.k + k;
      C* const into = c + row * sizes.n;
      if (rows == kRows) {
        const C f0 = factors[0];
        const C f1 = factors[sizes.k];
        const C f2 = factors[2 * sizes.k];
        const C f3 = factors[3 * sizes.k];
        for (std::int64_t i = 0; i < sizes.n; ++i) {
          const C x = from[i];
          into[i] += f0 * x;
          into[sizes.n + i] += f1 * x;
          into[2 * sizes.n + i] += f2 * x;
          into[3 * sizes.n + i] += f3 * x;
        }
        continue;
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t i = 0; i < sizes.n; ++i) {
          into[r * sizes.n + i] += static_cast<C>(factors[r * sizes.k]) * from[i];
        }
      }
    }
  }
}

template <class C, class A>
void multiply_all(const Value& a, const Value& b, Value& c, const Sizes& sizes) {
  const std::int64_t programs = c.dims()[0];
  const std::int64_t count = sizes.products;
  for (std::int64_t i = 0; i < programs * count; ++i) {
    const std::int64_t from_a = a.dims()[0] == 1 ? i % count : i;
    const std::int64_t from_b = b.dims()[0] == 1 ? i % count : i;
    multiply<C, A>(a.as<A>() + from_a * sizes.m * sizes.k, b.as<A>() + from_b * sizes.k * sizes.n,
                   c.as<C>() + i * sizes.m * sizes.n, sizes);
  }
}

void dot(Machine& machine, const Op& op) {
  const auto& shape_a = machine.type(op.operands[0]).shape;
  const auto& shape_b = machine.type(op.operands[1]).shape;
  const std::size_t rank = shape_a.size();
  Sizes sizes{1, shape_a[rank - 2], shape_b[rank - 1], shape_a[rank - 1]};
  for (std::size_t i = 0; i + 2 < rank; ++i) sizes.products *= shape_a[i];
  machine.add_flops(2 * sizes.products * sizes.m * sizes.n * sizes.k);
  if (machine.is_slice()) return;
  Pool& pool = machine.pool();
  const Value a = whole(pool, machine.operand(op, 0), shape_a);
  const Value b = whole(pool, machine.operand(op, 1), shape_b);
  const Value sum = whole(pool, machine.operand(op, 2), machine.type(op.operands[2]).shape);
  const std::int64_t programs = std::max({a.dims()[0], b.dims()[0], sum.dims()[0]});
  Value c(pool, sum.elem(), dims_of(programs, machine.type(op.results[0])));
  const std::int64_t bytes =
      sum.elements() / sum.dims()[0] * static_cast<std::int64_t>(stored_bytes(sum.elem()));
  for (std::int64_t p = 0; p < programs; ++p) {
    const std::int64_t from = sum.dims()[0] == 1 ? 0 : p;
    std::copy_n(sum.as<char>() + from * bytes, bytes, c.as<char>() + p * bytes);
  }
  if (sum.elem() == Elem::kF64) {
    multiply_all<double, double>(a, b, c, sizes);
  } else if (sum.elem() == Elem::kI32) {
    multiply_all<std::int32_t, std::int8_t>(a, b, c, sizes);
  } else {
    multiply_all<float, float>(a, b, c, sizes);
  }
  if (sum.elem() != Elem::kF16 && sum.elem() != Elem::kBF16) return machine.set_result(op, c);
  machine.set_result(op, by_float(sum.elem(), [&](auto t, auto rounds) {
                       using T = decltype(t);
                       return map<T, T>(pool, sum.elem(), rounds, c);
                     }));
}

constexpr std::array<Operation, 1> kOperations = {{{"tt.dot", dot}}};

}  // namespace

std::span<const Operation> products() { return kOperations; }

}  // namespace ferry::vgpu::triton
