// Profiles of PyTorch's: which kernels a call has, and what is refused.
#include "formats/profile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/error.h"

namespace ferry {
namespace {

std::string op(int id, const std::string& name, int ts, int dur, const std::string& more = "",
               int thread = 1) {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","pid":7,"tid":)" +
         std::to_string(thread) + R"(,"ts":)" + std::to_string(ts) + R"(,"dur":)" +
         std::to_string(dur) + R"(,"args":{"External id":)" + std::to_string(id) + more + "}}";
}

std::string on_gpu(int id, const std::string& us, const std::string& category = "kernel") {
  return R"({"ph":"X","cat":")" + category + R"(","name":"k","pid":0,"tid":7,"ts":900,"dur":)" +
         us + R"(,"args":{"External id":)" + std::to_string(id) + R"(,"stream":7,"device":0}})";
}

const std::string kNoInputs = R"(,"Input Dims":[],"Input type":[])";

std::string profile(const std::vector<std::string>& events) {
  std::string text = R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"a card"}],)"
                     "\n\"traceEvents\":[\n";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i > 0 ? ",\n" : "") + events[i];
  return text + "\n]}\n";
}

std::vector<ProfiledCall> calls(const std::vector<std::string>& events) {
  return parse_profile(profile(events), "p.json");
}

std::string error(const std::string& text) {
  try {
    parse_profile(text, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ProfileTest, ACallHasItsTensorsAndTheSumOfItsKernels) {
  const auto read =
      calls({op(1, "aten::addmm", 10, 5,
                R"(,"Input Dims":[[8],[4,2],[2,8],[],[]],"Input Strides":[[1],[2,1],[8,1],[],[]],)"
                R"("Input type":["float","c10::BFloat16","c10::Half","Scalar","Scalar"])"),
             op(2, "aten::cat", 20, 5,
                R"(,"Input Dims":[[[3,2],[5,2]],[]],"Input type":["TensorList","Scalar"])"),
             on_gpu(1, "2.5"), on_gpu(1, "0.25"), on_gpu(2, "1", "gpu_memcpy"),
             R"({"ph":"i","cat":"cpu_op","name":"an instant","args":{}})"});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].name, "aten.addmm");
  EXPECT_EQ(read[0].kernels_ns, 2750);
  EXPECT_EQ(read[0].inputs,
            (std::vector<ProfiledInput>{
                {DType::kF32, {8}}, {DType::kBF16, {4, 2}}, {DType::kF16, {2, 8}}}));
  EXPECT_EQ(read[1].kernels_ns, 1000);
  EXPECT_EQ(read[1].inputs,
            (std::vector<ProfiledInput>{{std::nullopt, {3, 2}}, {std::nullopt, {5, 2}}}));
}

TEST(ProfileTest, AKernelCountsForTheCallsAroundItOnItsThread) {
  const auto read = calls({op(1, "aten::to", 10, 20, kNoInputs), op(2, "aten::_to_copy", 11, 10),
                           op(3, "aten::copy_", 12, 5), op(4, "aten::mul", 25, 5),
                           op(5, "aten::elsewhere", 9, 50, "", 2), on_gpu(3, "1"), on_gpu(4, "2")});
  ASSERT_EQ(read.size(), 4u) << "the other thread's launched nothing";
  EXPECT_EQ(read[0].name + read[1].name + read[2].name + read[3].name,
            "aten.toaten._to_copyaten.copy_aten.mul");
  EXPECT_EQ(read[0].kernels_ns, 3000);
  EXPECT_EQ(read[1].kernels_ns, 1000);
  EXPECT_EQ(read[2].kernels_ns, 1000);
  EXPECT_EQ(read[3].kernels_ns, 2000);
}

TEST(ProfileTest, WhatIsUsedIsRefusedByEventAndKey) {
  const auto of = [](const std::string& bad) { return error(profile({on_gpu(1, "1"), bad})); };
  for (const std::string dims : {"[-1]", "[4611686018427387904,4]", "[\"a\"]", "7", "[1e999]"}) {
    const std::string inputs = R"(,"Input Dims":[)" + dims + R"(],"Input type":["float"])";
    const std::string refusal = of(op(1, "aten::f", 1, 1, inputs));
    EXPECT_EQ(refusal.find("p.json:4: event 1: expected \"Input Dims\": "), 0u) << refusal;
    const std::string scalar = R"(,"Input Dims":[)" + dims + R"(],"Input type":["Scalar"])";
    EXPECT_EQ(of(op(1, "aten::f", 1, 1, scalar)), "") << "nobody asks for a scalar's";
  }
  EXPECT_EQ(of(on_gpu(1, "1e999")),
            "p.json:4: event 1: expected \"dur\": a number of microseconds, not 1e999");
  EXPECT_EQ(of(on_gpu(1, "\"5\"")),
            "p.json:4: event 1: expected \"dur\": a number of microseconds, not 5");
  EXPECT_EQ(of(on_gpu(1, "-1")),
            "p.json:4: event 1: expected \"dur\": microseconds from 0, not -1");
  EXPECT_EQ(of(R"({"ph":"X","cat":"kernel","dur":1,"args":{"External id":0.5}})"),
            "p.json:4: event 1: expected \"External id\": an integer, not 0.5");
  EXPECT_EQ(of(R"({"ph":"X","cat":"cpu_op","name":7,"dur":1,"args":{"External id":1}})"),
            "p.json:4: event 1: expected \"name\": a string, not 7");
  EXPECT_EQ(of(R"({"ph":"X","cat":"cpu_op","name":"f","dur":1,"args":{"External id":1}})"),
            "p.json:4: event 1: expected \"ts\": a number of microseconds");
}

// What PyTorch's profiler wrote of a kernel on a card whose multiprocessors it did not know.
TEST(ProfileTest, WhatIsNotUsedMayBeAnything) {
  const std::string inputs = R"(,"Input Dims":[[2]],"Input type":["float"])";
  const std::string kernel =
      R"({"ph":"X","cat":"kernel","name":7,"ts":"never","dur":1,"blocks":1e999,)"
      R"("args":{"External id":1,"blocks per SM":inf,"warps per SM":-nan,"grid":[[[[1e400]]]]}})";
  const std::string other =
      R"({"ph":"X","cat":"user_annotation","dur":[],"args":{"External id":{}}})";
  const auto read = calls({op(1, "aten::f", 1, 1, inputs), kernel, other, "7", "[]"});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].kernels_ns, 1000);
  EXPECT_EQ(
      parse_profile("[" + op(1, "aten::f", 1, 1, inputs) + "," + on_gpu(1, "1") + "]", "p").size(),
      1u)
      << "Chrome's other form: the list alone";
}

TEST(ProfileTest, WhatIsNoSuchProfileIsRefused) {
  EXPECT_EQ(error("{\n\"traceEvents\":[\n{]}").find("p.json:3: expected a profile of PyTorch "),
            0u);
  EXPECT_EQ(error("{\"a\":1e999}"), error("{}")) << "nobody needs a";
  EXPECT_EQ(error("{}"),
            "p.json: expected \"traceEvents\" with operators (\"cpu_op\") and kernels");
  EXPECT_EQ(error(profile({op(1, "aten::f", 1, 1, kNoInputs)})),
            "p.json: expected kernels, but there is none: profile with ProfilerActivity.CUDA, on a "
            "GPU");
  EXPECT_EQ(error(profile({op(1, "aten::f", 1, 1), on_gpu(1, "1")})),
            "p.json: expected the shapes of arguments (\"Input Dims\"): profile with "
            "record_shapes=True");
}

TEST(ProfileTest, FilesOfFerrysAreNone) {
  EXPECT_FALSE(is_profile("{\"ferry\":\"kernel times\",\"schema\":1}\n{\"traceEvents\":[]}", "p"));
  EXPECT_FALSE(is_profile("", "p"));
  EXPECT_FALSE(is_profile("name = 1", "p"));
  EXPECT_TRUE(is_profile(" \n{\"schemaVersion\":1,\n", "p"));
  EXPECT_THROW(is_profile("\x1f\x8b\x08", "p"), InputError);
}

}  // namespace
}  // namespace ferry
