// What single operations make of a few elements.
#include "vgpu/triton/operations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

template <class T>
std::string type_of() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  if constexpr (std::is_same_v<T, std::int8_t>) return "i8";
  if constexpr (std::is_same_v<T, std::int16_t>) return "i16";
  if constexpr (std::is_same_v<T, std::int32_t>) return "i32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "i64";
  return "i16";  // the bits of a small float
}

// Loads all elements of a vector as %NAME. Its length is a power of two.
template <class T>
std::string loading(const std::string& name, const std::vector<T>& from,
                    const std::string& elem = type_of<T>()) {
  const std::string count = std::to_string(from.size());
  const std::string pointers = "tensor<" + count + "x!tt.ptr<" + elem + ">>";
  return "    %" + name + "_lanes = tt.make_range {end = " + count +
         " : i32, start = 0 : i32} : tensor<" + count + "xi32>\n    %" + name +
         "_all = tt.splat %p_" + name + " : !tt.ptr<" + elem + "> -> " + pointers + "\n    %" +
         name + "_at = tt.addptr %" + name + "_all, %" + name + "_lanes : " + pointers +
         ", tensor<" + count + "xi32>\n    %" + name + " = tt.load %" + name + "_at : " + pointers +
         "\n";
}

// Runs `body` on %a and %b, which gives %out, with as many elements as `out` has.
template <class Out, class A, class B>
std::vector<Out> run(const std::string& body, std::vector<A> a, std::vector<B> b, std::size_t count,
                     const std::string& elem = type_of<Out>(),
                     const std::string& elem_a = type_of<A>()) {
  std::vector<Out> out(count);
  const std::string storing = loading<Out>("o", out, elem);
  const std::string text = kernel_text("%p_a: !tt.ptr<" + elem_a + ">, %p_b: !tt.ptr<" +
                                           type_of<B>() + ">, %p_o: !tt.ptr<" + elem + ">",
                                       loading("a", a, elem_a) + loading("b", b) + storing +
                                           "    " + body + "\n    tt.store %o_at, %out : tensor<" +
                                           std::to_string(count) + "x!tt.ptr<" + elem + ">>\n");
  Launched launched(text);
  launched.with(a).with(b).with(out).run();
  return out;
}

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Bytes8 = std::vector<std::int8_t>;

Ints whole(const std::string& name, Ints a, Ints b) {
  return run<std::int32_t>("%out = " + name + " %a, %b : tensor<4xi32>", a, b, 4);
}

constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();

TEST(OperationsTest, WholeNumbers) {
  EXPECT_EQ(whole("arith.addi", {1, kMost, -1, 0}, {2, 1, -1, 0}), (Ints{3, kLeast, -2, 0}));
  EXPECT_EQ(whole("arith.muli", {3, kMost, -5, 0}, {-2, 2, -5, 9}), (Ints{-6, -2, 25, 0}));
  EXPECT_EQ(whole("arith.divsi", {7, -7, kLeast, 5}, {2, 2, -1, 0}), (Ints{3, -3, kLeast, 0}));
  EXPECT_EQ(whole("arith.remsi", {7, -7, kLeast, 5}, {2, 2, -1, 0}), (Ints{1, -1, 0, 0}));
  EXPECT_EQ(whole("arith.divui", {-1, 7, 8, 5}, {2, 2, -1, 0}), (Ints{kMost, 3, 0, 0}));
  EXPECT_EQ(whole("arith.shrsi", {-8, 8, -8, 8}, {1, 1, 40, 40}), (Ints{-4, 4, -1, 0}));
  EXPECT_EQ(whole("arith.shrui", {-1, 8, -8, 8}, {31, 1, 40, 40}), (Ints{1, 4, 0, 0}));
  EXPECT_EQ(whole("arith.maxui", {-1, 1, 0, 5}, {2, 2, 1, 4}), (Ints{-1, 2, 1, 5}));
  EXPECT_EQ(whole("arith.minsi", {-1, 1, 0, 5}, {2, 2, 1, 4}), (Ints{-1, 1, 0, 4}));
  EXPECT_EQ(whole("tt.mulhiui", {-1, 1 << 30, 3, 4}, {-1, 4, 5, 6}), (Ints{-2, 1, 0, 0}));
}

Floats floats(const std::string& name, Floats a, Floats b) {
  return run<float>("%out = " + name + " %a, %b : tensor<4xf32>", a, b, 4);
}

TEST(OperationsTest, NanIsLeftOutOrTaken) {
  const float nan = std::nanf("");
  EXPECT_EQ(floats("arith.maxnumf", {1, nan, 3, -1}, {2, 5, nan, -2}), (Floats{2, 5, 3, -1}));
  EXPECT_EQ(floats("arith.minnumf", {1, nan, 3, -1}, {2, 5, nan, -2}), (Floats{1, 5, 3, -2}));
  const Floats larger = floats("arith.maximumf", {1, nan, 3, -1}, {2, 5, nan, -2});
  EXPECT_EQ(larger[0], 2);
  EXPECT_TRUE(std::isnan(larger[1]) && std::isnan(larger[2]));
}

Ints compared(const std::string& how, Floats a, Floats b) {
  return run<std::int32_t>("%c = arith.cmpf " + how + ", %a, %b : tensor<4xf32>\n    " +
                               "%out = arith.extui %c : tensor<4xi1> to tensor<4xi32>",
                           a, b, 4);
}

TEST(OperationsTest, ComparisonsWithNan) {
  const float nan = std::nanf("");
  const Floats a{1, 2, nan, 3};
  const Floats b{2, 2, 1, 1};
  EXPECT_EQ(compared("olt", a, b), (Ints{1, 0, 0, 0}));
  EXPECT_EQ(compared("ult", a, b), (Ints{1, 0, 1, 0}));
  EXPECT_EQ(compared("oge", a, b), (Ints{0, 1, 0, 1}));
  EXPECT_EQ(compared("uge", a, b), (Ints{0, 1, 1, 1}));
  EXPECT_EQ(compared("one", a, b), (Ints{1, 0, 0, 1}));
  EXPECT_EQ(compared("une", a, b), (Ints{1, 0, 1, 1}));
  EXPECT_EQ(compared("ueq", a, b), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(compared("uno", a, b), (Ints{0, 0, 1, 0}));
  EXPECT_EQ(compared("ord", a, b), (Ints{1, 1, 0, 1}));
}

TEST(OperationsTest, Conversions) {
  const Ints unused{0};
  EXPECT_EQ(run<std::int32_t>("%out = arith.extsi %a : tensor<2xi8> to tensor<2xi32>",
                              Bytes8{-1, 5}, unused, 2),
            (Ints{-1, 5}));
  EXPECT_EQ(run<std::int32_t>("%out = arith.extui %a : tensor<2xi8> to tensor<2xi32>",
                              Bytes8{-1, 5}, unused, 2),
            (Ints{255, 5}));
  EXPECT_EQ(run<std::int8_t>("%out = arith.trunci %a : tensor<2xi32> to tensor<2xi8>",
                             Ints{257, -1}, unused, 2),
            (Bytes8{1, -1}));
  EXPECT_EQ(run<std::int32_t>("%out = arith.fptosi %a : tensor<4xf32> to tensor<4xi32>",
                              Floats{-1.9F, 1e20F, -1e20F, std::nanf("")}, unused, 4),
            (Ints{-1, kMost, kLeast, 0}));
  EXPECT_EQ(
      run<float>("%out = arith.uitofp %a : tensor<2xi32> to tensor<2xf32>", Ints{-1, 3}, unused, 2),
      (Floats{4294967296.0F, 3}));
  EXPECT_EQ(run<std::int32_t>("%out = tt.bitcast %a : tensor<2xf32> -> tensor<2xi32>",
                              Floats{1, -0.0F}, unused, 2),
            (Ints{0x3f800000, kLeast}));
}

TEST(OperationsTest, SmallFloatsAreRoundedToTheNearest) {
  const Ints unused{0};
  const auto to_half = [&](float value) {
    return run<std::uint16_t>("%out = arith.truncf %a : tensor<1xf32> to tensor<1xf16>",
                              Floats{value}, unused, 1, "f16")[0];
  };
  EXPECT_EQ(to_half(1.0F), 0x3c00);
  EXPECT_EQ(to_half(1.00048828125F), 0x3c00);  // a tie: to even
  EXPECT_EQ(to_half(1.00146484375F), 0x3c02);
  EXPECT_EQ(to_half(65519.0F), 0x7bff);
  EXPECT_EQ(to_half(65520.0F), 0x7c00);
  EXPECT_EQ(to_half(-5.9604645e-8F), 0x8001);  // the smallest
  EXPECT_EQ(to_half(2.9e-8F), 0);
  EXPECT_EQ(to_half(std::nanf("")), 0x7e00);
  // Twice a number has the next exponent, and the same fraction.
  for (std::uint32_t bits = 0x400; bits < 0x7800; bits += 7) {
    const std::vector<std::uint16_t> half{static_cast<std::uint16_t>(bits)};
    const auto twice = run<std::uint16_t>("%out = arith.addf %a, %a : tensor<1xf16>", half, unused,
                                          1, "f16", "f16");
    ASSERT_EQ(twice[0], bits + 0x400);
  }
}

TEST(OperationsTest, ReductionsAndScansInBothDirections) {
  const std::string add =
      "    ^bb0(%x: i32, %y: i32):\n      %s = arith.addi %x, %y : i32\n"
      "      tt.reduce.return %s : i32\n    })";
  const std::string scan =
      "    ^bb0(%x: i32, %y: i32):\n      %t = arith.muli %x, %y : i32\n"
      "      tt.scan.return %t : i32\n    })";
  const Ints numbers{1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto& [axis, shape, count, sums] :
       std::vector<std::tuple<std::string, std::string, std::size_t, Ints>>{
           {"0", "4", 4, {6, 8, 10, 12}}, {"1", "2", 2, {10, 26}}}) {
    EXPECT_EQ(run<std::int32_t>("%m = tt.reshape %a : tensor<8xi32> -> tensor<2x4xi32>\n"
                                "    %out = \"tt.reduce\"(%m) <{axis = " +
                                    axis + " : i32}> ({\n" + add +
                                    " : (tensor<2x4xi32>) -> tensor<" + shape + "xi32>",
                                numbers, Ints{0}, count),
              sums);
  }
  for (const auto& [reverse, products] : std::vector<std::pair<std::string, Ints>>{
           {"false", {1, 2, 6, 24}}, {"true", {24, 24, 12, 4}}}) {
    EXPECT_EQ(run<std::int32_t>("%out = \"tt.scan\"(%a) <{axis = 0 : i32, reverse = " + reverse +
                                    "}> ({\n" + scan + " : (tensor<4xi32>) -> tensor<4xi32>",
                                Ints{1, 2, 3, 4}, Ints{0}, 4),
              products);
  }
}

TEST(OperationsTest, ShapesKeepTheirElements) {
  const Ints numbers{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(run<std::int32_t>(
                "%m = tt.reshape %a : tensor<8xi32> -> tensor<2x4xi32>\n"
                "    %t = tt.trans %m {order = array<i32: 1, 0>} : tensor<2x4xi32> -> "
                "tensor<4x2xi32>\n    %out = tt.reshape %t : tensor<4x2xi32> -> tensor<8xi32>",
                numbers, Ints{0}, 8),
            (Ints{1, 5, 2, 6, 3, 7, 4, 8}));
  EXPECT_EQ(run<std::int32_t>("%j = tt.join %a, %b : tensor<2xi32> -> tensor<2x2xi32>\n"
                              "    %out = tt.reshape %j : tensor<2x2xi32> -> tensor<4xi32>",
                              Ints{1, 2}, Ints{3, 4}, 4),
            (Ints{1, 3, 2, 4}));
  EXPECT_EQ(run<std::int32_t>("%out = tt.gather %a[%b] {axis = 0 : i32} : (tensor<4xi32>, "
                              "tensor<4xi32>) -> tensor<4xi32>",
                              Ints{5, 6, 7, 8}, Ints{3, 0, 0, 2}, 4),
            (Ints{8, 5, 5, 7}));
  EXPECT_EQ(run<std::int32_t>("%out = tt.histogram %a : tensor<4xi32> -> tensor<4xi32>",
                              Ints{3, 0, 3, 9}, Ints{0}, 4),
            (Ints{1, 0, 0, 2}));
}

TEST(OperationsTest, Products) {
  EXPECT_EQ(run<float>("%m = tt.reshape %a : tensor<4xf32> -> tensor<2x2xf32>\n"
                       "    %n = tt.reshape %b : tensor<4xf32> -> tensor<2x2xf32>\n"
                       "    %d = tt.dot %m, %n, %m, inputPrecision = tf32 : tensor<2x2xf32> * "
                       "tensor<2x2xf32> -> tensor<2x2xf32>\n"
                       "    %out = tt.reshape %d : tensor<2x2xf32> -> tensor<4xf32>",
                       Floats{1, 2, 3, 4}, Floats{5, 6, 7, 8}, 4),
            (Floats{20, 24, 46, 54}));
}

std::string library(const std::string& symbol, const std::string& operands,
                    const std::string& types, const std::string& result) {
  return "%out = tt.extern_elementwise " + operands +
         " {libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_" + symbol + "\"} : (" +
         types + ") -> " + result;
}

TEST(OperationsTest, FunctionsOfLibdevice) {
  const std::string floats = "tensor<4xf32>", ints = "tensor<4xi32>";
  const Floats a{-1, 0.5, 3, 40}, b{2, -0.25, 1, 4};
  const auto two = [&](const std::string& symbol) {
    return run<float>(library(symbol, "%a, %b", floats + ", " + floats, floats), a, b, 4);
  };
  EXPECT_EQ(two("fmul_rn"), (Floats{-2, -0.125, 3, 160}));
  EXPECT_EQ(two("fadd_rn"), (Floats{1, 0.25, 4, 44}));
  EXPECT_EQ(two("fdiv_rn"), (Floats{-0.5, -2, 3, 10}));
  EXPECT_EQ(two("fmodf"), (Floats{-1, 0, 0, 0}));
  EXPECT_EQ(two("nextafterf")[2], std::nextafter(3.0f, 1.0f));
  EXPECT_EQ(two("hypotf")[2], std::hypot(3.0f, 1.0f));
  EXPECT_EQ(two("atan2f")[0], std::atan2(-1.0f, 2.0f));
  EXPECT_EQ(run<float>(library("ldexpf", "%a, %b", floats + ", " + ints, floats), a,
                       Ints{1, 2, -1, 0}, 4),
            (Floats{-2, 2, 1.5, 40}));
  EXPECT_EQ(run<std::int32_t>(library("signbitf", "%a", floats, ints), a, b, 4),
            (Ints{1, 0, 0, 0}));
  EXPECT_EQ(run<std::int32_t>(library("ilogbf", "%a", floats, ints), a, b, 4), (Ints{0, -1, 1, 5}));
  const auto one = [&](const std::string& symbol, Floats of) {
    return run<float>(library(symbol, "%a", floats, floats), of, b, 4);
  };
  EXPECT_EQ(one("frcp_rn", {1, 2, 4, 8}), (Floats{1, 0.5, 0.25, 0.125}));
  // Values from Abramowitz and Stegun, tables 7.1 and 9.8; erfcx(40) from its series.
  const Floats scaled = one("erfcxf", a);
  EXPECT_NEAR(scaled[0], 5.00898, 1e-5);
  EXPECT_NEAR(scaled[3], 0.0141003, 1e-7);
  const Floats inverse = one("erfinvf", {0, 0.8427008f, -0.9953223f, 1});
  EXPECT_NEAR(inverse[1], 1, 1e-5);
  EXPECT_NEAR(inverse[2], -2, 1e-4);
  EXPECT_EQ(inverse[0], 0);
  EXPECT_TRUE(std::isinf(inverse[3]));
  EXPECT_NEAR(one("cyl_bessel_i0f", a)[0], 1.2660659, 1e-6);
  EXPECT_NEAR(one("cyl_bessel_i1f", a)[0], -0.5651591, 1e-6);
}

TEST(OperationsTest, TheTableHasEachOperationOnce) {
  EXPECT_EQ(find_operation("tt.unheard_of"), nullptr);
  EXPECT_NE(find_operation("tt.load"), nullptr);
  EXPECT_TRUE(has_function("__nv_fast_expf"));
  EXPECT_TRUE(has_function("__nv_erf"));
  EXPECT_TRUE(has_function("__nv_dmul_rn"));
  EXPECT_FALSE(has_function("__nv_fmul_rz"));
  EXPECT_FALSE(has_function("__nv_j0f"));
}

}  // namespace
}  // namespace ferry::vgpu::triton
