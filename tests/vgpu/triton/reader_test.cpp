#include "vgpu/triton/reader.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/error.h"
#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

const Op& op(const Module& module, std::size_t number) {
  return module.functions.at(0).body.blocks.at(0).ops.at(number);
}

TEST(ReaderTest, ReadsWhatTritonPrints) {
  const Module module = read_module(addition(), "k");
  ASSERT_EQ(module.functions.size(), 1U);
  const Function& function = module.functions[0];
  EXPECT_TRUE(function.is_public);
  EXPECT_EQ(function.name, "k");
  ASSERT_EQ(function.arguments.size(), 4U);
  EXPECT_EQ(function.types[function.arguments[1]].elem, Elem::kPointer);
  EXPECT_EQ(function.types[function.arguments[1]].pointee, Elem::kF32);
  EXPECT_EQ(op(module, 7).name, "arith.cmpi");
  EXPECT_EQ(op(module, 7).words, std::vector<std::string>{"slt"});
  EXPECT_EQ(function.types[op(module, 7).results[0]].elem, Elem::kI1);
  EXPECT_EQ(function.types[op(module, 7).results[0]].shape, std::vector<std::int64_t>{4});
  EXPECT_EQ(op(module, 3).attributes.at("end"), "4");
  EXPECT_EQ(op(module, 3).line, 7U);
}

TEST(ReaderTest, NamesTheLineOutsideTritonsLibrary) {
  const Module module = read_module(R"(#loc = loc(unknown)
module {
  tt.func public @k() {
    %0 = arith.constant 1 : i32 loc(#loc5)
    %1 = arith.constant 1 : i32 loc(callsite(#loc1 at #loc4))
    %2 = arith.constant 1 : i32 loc(fused[#loc3, #loc2])
    %3 = arith.constant 1 : i32 loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("helper.py":3:1)
#loc2 = loc("/x/triton/language/standard.py":4:1)
#loc3 = loc("mine.py":5:1)
#loc4 = loc("sum"(#loc3))
#loc5 = loc(callsite(#loc2 at #loc4))
)",
                                    "k");
  const auto line = [&](std::size_t number) {
    return to_string(module.locations[op(module, number).location]);
  };
  EXPECT_EQ(line(0), "mine.py:5");
  EXPECT_EQ(line(1), "helper.py:3");
  EXPECT_EQ(line(2), "mine.py:5");
  EXPECT_EQ(line(3), "an unknown line");
}

TEST(ReaderTest, ReadsRegionsWithSeveralResults) {
  const Module module = read_module(kernel_text("%x: f32, %i: i32", R"(
    %5:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc1 at #loc)), %b: i32, %c: f32, %d: i32):
      %6 = arith.cmpf ogt, %a, %c : f32 loc(#loc)
      %7 = arith.select %6, %a, %c : f32 loc(#loc)
      tt.reduce.return %7, %b : f32, i32 loc(#loc)
    }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32) loc(#loc)
    %8 = arith.sitofp %5#1 : i32 to f32 loc(#loc)
)"),
                                    "k");
  const Op& reduce = op(module, 0);
  EXPECT_EQ(reduce.results.size(), 2U);
  EXPECT_EQ(reduce.attributes.at("axis"), "0");
  EXPECT_EQ(reduce.regions.at(0).blocks.at(0).arguments.size(), 4U);
  EXPECT_EQ(op(module, 1).operands.at(0), reduce.results[1]);
  EXPECT_EQ(module.functions[0].types[op(module, 1).results[0]].elem, Elem::kF32);
}

TEST(ReaderTest, SaysWhatItExpected) {
  const auto error = [](const std::string& body) -> std::string {
    try {
      read_module(kernel_text("%x: f32", body), "k");
    } catch (const InputError& caught) {
      return caught.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("    %1 = arith.negf %y : f32\n"),
            "k:4: expected a value that is assigned before, not %y, got ' : f32'");
  EXPECT_EQ(error("    %1 = arith.negf %x : <f32\n"), "k:4: expected a type, got '<f32'");
  EXPECT_EQ(error("    %1 = arith.negf %x\n"), "k:4: expected the type of %1, got ''");
  EXPECT_EQ(error("    scf.if %x {\n"), "k:9: expected '}', got ''");
}

// What is left of a kernel when a part is missing, or stands twice, is read or rejected.
TEST(ReaderTest, AnyTextIsReadOrRejected) {
  const std::string whole = kernel_text("%x: !tt.ptr<f32>, %i: i32", R"(
    %c0 = arith.constant 0 : i32 loc(#loc)
    %cst = arith.constant dense<1.000000e+00> : tensor<4xf32> loc(#loc)
    %s:2 = scf.for %k = %c0 to %i step %i iter_args(%a = %i, %b = %cst) -> (i32, tensor<4xf32>)  : i32 {
      %1 = arith.cmpi eq, %a, %c0 : i32 loc(#loc)
      %2 = scf.if %1 -> (i32) {
        scf.yield %a : i32 loc(#loc)
      } else {
        scf.yield %k : i32 loc(#loc)
      } loc(#loc)
      scf.yield %2, %b : i32, tensor<4xf32> loc(#loc)
    } {tt.num_stages = 2 : i32} loc(#loc1)
    %w = scf.while (%q = %s#0) : (i32) -> i32 {
      %4 = arith.cmpi slt, %q, %i : i32 loc(#loc)
      scf.condition(%4) %q : i32 loc(#loc)
    } do {
    ^bb0(%q2: i32 loc(unknown)):
      scf.yield %q2 : i32 loc(#loc)
    } loc(#loc)
    %r = "tt.reduce"(%s#1) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %5 = arith.addf %l, %m : f32 loc(#loc)
      tt.reduce.return %5 : f32 loc(#loc)
    }) : (tensor<4xf32>) -> f32 loc(callsite(#loc1 at #loc))
    %6 = tt.addptr %x, %w : !tt.ptr<f32>, i32 loc(#loc)
    tt.store %6, %r : !tt.ptr<f32> loc(#loc1)
)");
  int rejected = 0;
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    const std::size_t from = random() % text.size();
    const std::size_t count = random() % (i % 3 == 0 ? 3 : 60);
    i % 2 == 0 ? text.erase(from, count) : text.insert(random() % text.size(), text, from, count);
    Kernel kernel;
    try {
      read_kernel(text, "k", kernel);
    } catch (const std::exception&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 1000);
  Kernel kernel;
  EXPECT_NO_THROW(read_kernel(whole, "k", kernel));
}

}  // namespace
}  // namespace ferry::vgpu::triton
