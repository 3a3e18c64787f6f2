// Kernels in TTIR for tests, and a way to launch them on vectors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/stream_op.h"
#include "vgpu/triton/launch.h"

namespace ferry::vgpu::triton {

// The text of a kernel with one function: its arguments and its body.
inline std::string kernel_text(const std::string& arguments, const std::string& body) {
  return "#loc = loc(unknown)\nmodule {\n  tt.func public @k(" + arguments +
         ") attributes {noinline = false} {\n" + body +
         "    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n"
         "#loc1 = loc(\"kernel.py\":7:3)\n";
}

// A launch whose arguments are given one after the other.
class Launched {
 public:
  explicit Launched(const std::string& text) { read_kernel(text, "k", kernel); }

  template <class T>
  Launched& with(std::vector<T>& memory) {
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    launch.arguments.push_back(address);
    launch.memory.push_back({address, memory.size() * sizeof(T)});
    std::sort(launch.memory.begin(), launch.memory.end(),
              [](Range a, Range b) { return a.address < b.address; });
    return *this;
  }
  Launched& with(std::int64_t number) {
    launch.arguments.push_back(static_cast<std::uint64_t>(number));
    return *this;
  }
  Launched& with(double number) {
    launch.arguments.push_back(std::bit_cast<std::uint64_t>(number));
    return *this;
  }
  Launched& on(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1) {
    launch.grid = {x, y, z};
    return *this;
  }
  void run() const { triton::run(kernel, launch); }
  Accesses accesses() const { return find_accesses(kernel, launch); }

  std::shared_ptr<Kernel> owned = std::make_shared<Kernel>();
  Kernel& kernel = *owned;
  Launch launch;
};

template <class T>
Range bytes_of(const std::vector<T>& memory, std::size_t first, std::size_t count) {
  return {reinterpret_cast<std::uint64_t>(memory.data() + first), count * sizeof(T)};
}

// out[i] = x[i] + y[i] for i < n, four elements a program. Triton's tutorial 01 looks like this.
inline std::string addition(bool masked = true) {
  const std::string mask = masked ? ", %m_4" : "";
  return kernel_text(
      "%x: !tt.ptr<f32> loc(\"x\"(#loc)), %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
      "%o: !tt.ptr<f32>, %n: i32",
      R"(    %i = arith.constant 4 : i32 loc(#loc)
    %p = tt.get_program_id x : i32 loc(#loc)
    %i_0 = arith.muli %p, %i : i32 loc(#loc)
    %i_1 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32> loc(#loc)
    %i_2 = tt.splat %i_0 : i32 -> tensor<4xi32> loc(#loc)
    %i_3 = arith.addi %i_2, %i_1 : tensor<4xi32> loc(#loc)
    %m = tt.splat %n : i32 -> tensor<4xi32> loc(#loc)
    %m_4 = arith.cmpi slt, %i_3, %m : tensor<4xi32> loc(#loc)
    %0 = tt.splat %o : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>> loc(#loc)
    %1 = tt.addptr %0, %i_3 : tensor<4x!tt.ptr<f32>>, tensor<4xi32> loc(#loc)
    %2 = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>> loc(#loc)
    %3 = tt.addptr %2, %i_3 : tensor<4x!tt.ptr<f32>>, tensor<4xi32> loc(#loc)
    %4 = tt.load %3)" +
          mask + R"( : tensor<4x!tt.ptr<f32>> loc(#loc1)
    %5 = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>> loc(#loc)
    %6 = tt.addptr %5, %i_3 : tensor<4x!tt.ptr<f32>>, tensor<4xi32> loc(#loc)
    %7 = tt.load %6)" +
          mask + R"( : tensor<4x!tt.ptr<f32>> loc(#loc1)
    %8 = arith.addf %4, %7 : tensor<4xf32> loc(#loc)
    tt.store %1, %8, %m_4 : tensor<4x!tt.ptr<f32>> loc(#loc1)
)");
}

}  // namespace ferry::vgpu::triton
