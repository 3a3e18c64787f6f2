// The costs of an operator, for Python: a C function around formats/op_costs.h.
//
// Captures from Python, captures from C++ and the virtual GPU use the same code for costs. Python
// loads this file as a library of its own (torch_ferry/costs.py) and not with the module `_C`,
// because a capture does not need the module. The library uses neither LibTorch nor Python, so a
// compiler makes it in two seconds in a source tree where nothing was built.
//
// costs.py repeats the structs below, and nothing else. The caller owns everything that pointers
// point to, and nothing is kept. The dtype of a tensor is its name in program files; other names
// abort.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <vector>

#include "formats/layout.h"
#include "formats/op_costs.h"

namespace ferry::real {
namespace {

constexpr std::size_t kProductsMost = 2;  // the backward of a convolution has two

struct CTensor {
  const char* dtype;
  std::uint64_t dims;
  const std::int64_t* shape;
  const std::int64_t* strides;
  std::int64_t offset;
};

// A bool or text argument. Arguments that costs do not depend on have no effect.
struct CArgument {
  const char* name;
  const char* text;  // null: a bool
  bool flag;
};

struct CCall {
  const char* name;  // "aten.mm"
  std::uint64_t inputs, outputs, writes, arguments;
  const CTensor* in;
  const CTensor* out;
  const std::uint32_t* written;  // positions in `in`
  const CArgument* given;
};

struct CCosts {
  std::int64_t flops, read_bytes, written_bytes, kernels;
  std::uint64_t products;
  std::array<std::array<std::int64_t, 5>, kProductsMost> product;  // batch, m, n, k, aligned bytes
};

// The layouts do not move, because a deque holds them.
std::vector<const Layout*> layouts_of(const CTensor* tensors, std::uint64_t count,
                                      std::deque<Layout>& layouts) {
  std::vector<const Layout*> all;
  for (const CTensor* each = tensors; each != tensors + count; ++each) {
    const auto dtype = parse_dtype(each->dtype);
    if (!dtype) std::abort();
    all.push_back(&layouts.emplace_back(Layout{*dtype,
                                               {each->shape, each->shape + each->dims},
                                               {each->strides, each->strides + each->dims},
                                               each->offset}));
  }
  return all;
}

void tell_costs(const CCall& asked, CCosts& said) {
  std::deque<Layout> layouts;
  OpCall call{.name = asked.name,
              .in = layouts_of(asked.in, asked.inputs, layouts),
              .out = layouts_of(asked.out, asked.outputs, layouts),
              .writes = {asked.written, asked.written + asked.writes}};
  for (const CArgument* each = asked.given; each != asked.given + asked.arguments; ++each) {
    if (each->text != nullptr) {
      call.flags.set(each->name, std::string_view(each->text));
    } else {
      call.flags.set(each->name, each->flag);
    }
  }
  const OpCosts costs = op_costs(call);
  if (costs.products.size() > kProductsMost) std::abort();
  said = {costs.flops,   costs.read_bytes,      costs.written_bytes,
          costs.kernels, costs.products.size(), {}};
  for (std::size_t i = 0; i < costs.products.size(); ++i) {
    const MatrixProduct& it = costs.products[i];
    said.product[i] = {it.batch, it.m, it.n, it.k, it.aligned_bytes};
  }
}

}  // namespace
}  // namespace ferry::real

// The caller owns both. All of `said` is written.
extern "C" [[gnu::visibility("default")]] void ferry_op_costs(const void* asked, void* said) {
  using namespace ferry::real;
  tell_costs(*static_cast<const CCall*>(asked), *static_cast<CCosts*>(said));
}
