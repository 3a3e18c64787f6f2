// Random kernels: an expression of loads, element-wise operations and reductions, as TTIR and as
// plain C++ that computes the same, element by element.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ferry::vgpu::triton {

inline constexpr std::int64_t kRows = 8;  // of a program's tile
inline constexpr std::int64_t kColumns = 16;
inline constexpr std::int64_t kTile = kRows * kColumns;

// A small whole number in each element, so that sums have the same bits in any order.
using Tile = std::array<double, kTile>;

// Draws a kernel of two arguments, x and out, whose programs each read and write one tile. It keeps
// the text, and the values of the reference for the tile that it was given.
class DrawnKernel {
 public:
  DrawnKernel(std::uint64_t seed, Tile x, std::int64_t program) : random_(seed), program_(program) {
    line("%base = tt.get_program_id x : i32");
    line("%size = arith.constant " + std::to_string(kTile) + " : i32");
    line("%first = arith.muli %base, %size : i32");
    draw(2) == 0 ? lanes_by_axis() : lanes_by_number();
    line("%start = tt.splat %first : i32 -> " + type("i32"));
    line("%at = arith.addi %start, %grid : " + type("i32"));
    pointers("%x", "%from");
    pointers("%out", "%to");
    line("%v0 = tt.load %from : " + type("!tt.ptr<f32>"));
    values_.push_back(x);
    const int steps = 3 + draw(8);
    for (int i = 0; i < steps; ++i) step();
    line("tt.store %to, %v" + std::to_string(values_.size() - 1) + " : " + type("!tt.ptr<f32>"));
  }

  std::string text() const { return text_.str(); }
  const Tile& result() const { return values_.back(); }

 private:
  static std::string type(const std::string& elem) { return "tensor<8x16x" + elem + ">"; }
  void line(const std::string& text) { text_ << "    " << text << " loc(#loc)\n"; }
  int draw(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  std::string any() {
    return "%v" + std::to_string(chosen_ = draw(static_cast<int>(values_.size())));
  }
  const Tile& chosen() const { return values_[static_cast<std::size_t>(chosen_)]; }
  std::string next(const Tile& tile) {
    values_.push_back(tile);
    return "%v" + std::to_string(values_.size() - 1);
  }
  void pointers(const std::string& argument, const std::string& name) {
    line(name + "_0 = tt.splat " + argument + " : !tt.ptr<f32> -> " + type("!tt.ptr<f32>"));
    line(name + " = tt.addptr " + name + "_0, %at : " + type("!tt.ptr<f32>") + ", " + type("i32"));
  }

  // The numbers of the tile's elements, from 0 on, as a sum for each axis or as one range.
  void lanes_by_axis() {
    line("%rows = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>");
    line("%columns = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>");
    line("%width = arith.constant dense<16> : tensor<8xi32>");
    line("%below = arith.muli %rows, %width : tensor<8xi32>");
    line("%row = tt.expand_dims %below {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>");
    line(
        "%column = tt.expand_dims %columns {axis = 0 : i32} : tensor<16xi32> -> "
        "tensor<1x16xi32>");
    line("%all_rows = tt.broadcast %row : tensor<8x1xi32> -> " + type("i32"));
    line("%all_columns = tt.broadcast %column : tensor<1x16xi32> -> " + type("i32"));
    line("%grid = arith.addi %all_rows, %all_columns : " + type("i32"));
  }
  void lanes_by_number() {
    line("%lanes = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>");
    line("%grid = tt.reshape %lanes : tensor<128xi32> -> " + type("i32"));
  }

  void step() {
    switch (draw(6)) {
      case 0:
        return reduce();
      case 1:
        return select();
      case 2:
        return loop();
      case 3:
        return branch();
      default:
        return combine();
    }
  }

  // Values stay small, because products are clamped.
  void combine() {
    static constexpr std::array<const char*, 5> kNames = {
        "arith.addf", "arith.subf", "arith.maxnumf", "arith.minnumf", "arith.mulf"};
    const int which = draw(kNames.size());
    const std::string a = any();
    const Tile x = chosen();
    const std::string b = any();
    const Tile y = chosen();
    Tile made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::array<double, 5> results = {x[i] + y[i], x[i] - y[i], std::max(x[i], y[i]),
                                             std::min(x[i], y[i]), x[i] * y[i]};
      made[i] = std::clamp(results[static_cast<std::size_t>(which)], -64.0, 64.0);
    }
    const std::string id = std::to_string(values_.size());
    line("%c" + id + " = " + kNames[static_cast<std::size_t>(which)] + " " + a + ", " + b + " : " +
         type("f32"));
    clamp("%c" + id, made);
  }
  void clamp(const std::string& value, const Tile& made) {
    const std::string id = std::to_string(values_.size());
    line("%low" + id + " = arith.constant dense<-6.400000e+01> : " + type("f32"));
    line("%high" + id + " = arith.constant dense<0x42800000> : " + type("f32"));
    line(next(made) + " = tt.clampf " + value + ", %low" + id + ", %high" + id +
         ", propagateNan = none : " + type("f32"));
  }

  // A reduction along one axis, spread over the tile again.
  void reduce() {
    const bool over_rows = draw(2) == 0;
    const bool sums = draw(2) == 0;
    const std::string from = any();
    const Tile x = chosen();
    Tile made{};
    for (std::int64_t i = 0; i < kTile; ++i) {
      double total = sums ? 0 : -1e9;
      const std::int64_t count = over_rows ? kRows : kColumns;
      for (std::int64_t k = 0; k < count; ++k) {
        const auto at = static_cast<std::size_t>(over_rows ? k * kColumns + i % kColumns
                                                           : i / kColumns * kColumns + k);
        total = sums ? total + x[at] : std::max(total, x[at]);
      }
      made[static_cast<std::size_t>(i)] = std::clamp(total, -64.0, 64.0);
    }
    const std::string id = std::to_string(values_.size());
    const std::string axis = over_rows ? "0" : "1";
    const std::string reduced = over_rows ? "tensor<16xf32>" : "tensor<8xf32>";
    const std::string expanded = over_rows ? "tensor<1x16xf32>" : "tensor<8x1xf32>";
    text_ << "    %r" << id << " = \"tt.reduce\"(" << from << ") <{axis = " << axis
          << " : i32}> ({\n    ^bb0(%a" << id << ": f32, %b" << id << ": f32):\n";
    line("%s" + id + " = " + (sums ? "arith.addf" : "arith.maxnumf") + " %a" + id + ", %b" + id +
         " : f32");
    line("tt.reduce.return %s" + id + " : f32");
    line("}) : (" + type("f32") + ") -> " + reduced);
    line("%e" + id + " = tt.expand_dims %r" + id + " {axis = " + axis + " : i32} : " + reduced +
         " -> " + expanded);
    line("%w" + id + " = tt.broadcast %e" + id + " : " + expanded + " -> " + type("f32"));
    clamp("%w" + id, made);
  }

  void select() {
    const std::string a = any();
    const Tile x = chosen();
    const std::string b = any();
    const Tile y = chosen();
    Tile made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = x[i] > y[i] ? x[i] : -y[i];
    const std::string id = std::to_string(values_.size());
    line("%m" + id + " = arith.cmpf ogt, " + a + ", " + b + " : " + type("f32"));
    line("%n" + id + " = arith.negf " + b + " : " + type("f32"));
    line(next(made) + " = arith.select %m" + id + ", " + a + ", %n" + id + " : " + type("i1") +
         ", " + type("f32"));
  }

  // As many turns as the program's number says; each subtracts a value and takes the larger.
  void loop() {
    const std::string start = any();
    Tile made = chosen();
    const std::string by = any();
    const Tile step = chosen();
    for (std::int64_t turn = 0; turn < program_; ++turn) {
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = std::max(step[i] - made[i], step[i]);
    }
    for (double& element : made) element = std::clamp(element, -64.0, 64.0);
    const std::string id = std::to_string(values_.size());
    line("%z" + id + " = arith.constant 0 : i32");
    line("%u" + id + " = arith.constant 1 : i32");
    text_ << "    %l" << id << " = scf.for %i" << id << " = %z" << id << " to %base step %u" << id
          << " iter_args(%c" << id << " = " << start << ") -> (" << type("f32") << ")  : i32 {\n";
    line("%d" + id + " = arith.subf " + by + ", %c" + id + " : " + type("f32"));
    line("%k" + id + " = arith.maxnumf %d" + id + ", " + by + " : " + type("f32"));
    line("scf.yield %k" + id + " : " + type("f32"));
    line("}");
    clamp("%l" + id, made);
  }

  // Programs with an even number take one way, the others another.
  void branch() {
    const std::string a = any();
    Tile made = chosen();
    if (program_ % 2 != 0) {
      for (double& element : made) element = -element;
    }
    const std::string id = std::to_string(values_.size());
    line("%u" + id + " = arith.constant 1 : i32");
    line("%o" + id + " = arith.andi %base, %u" + id + " : i32");
    line("%q" + id + " = arith.cmpi eq, %o" + id + ", %u" + id + " : i32");
    text_ << "    " << next(made) << " = scf.if %q" << id << " -> (" << type("f32") << ") {\n";
    line("%n" + id + " = arith.negf " + a + " : " + type("f32"));
    line("scf.yield %n" + id + " : " + type("f32"));
    text_ << "    } else {\n";
    line("scf.yield " + a + " : " + type("f32"));
    line("}");
  }

  std::mt19937_64 random_;
  std::int64_t program_;
  std::ostringstream text_;
  std::vector<Tile> values_;
  int chosen_ = 0;
};

}  // namespace ferry::vgpu::triton
