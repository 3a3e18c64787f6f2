#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

#include "vgpu/runtime/control.h"

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*,
                                       dim3*, dim3*, int*);

namespace ferry::vgpu {
namespace {

const char kKernel = 0;
constexpr const char* kReadable = "void (anonymous namespace)::scale<float>(float*, int)";

void register_kernel() {
  __cudaRegisterFunction(nullptr, &kKernel, nullptr, "_ZN12_GLOBAL__N_15scaleIfEEvPT_i", -1,
                         nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t launch_it() { return cudaLaunchKernel(&kKernel, {1}, {1}, nullptr, 0, nullptr); }

TEST(AttemptTest, WhatIsRefusedMeanwhileIsKeptAndToldNobody) {
  reset();
  register_kernel();
  const auto before = counts().refusals;
  {
    const Attempt outer;
    {
      const Attempt inner;
      EXPECT_EQ(launch_it(), cudaErrorNotSupported);
      note_refusal("another");
      EXPECT_EQ(inner.refused(), kReadable);
    }
    EXPECT_EQ(outer.refused(), "");
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_EQ(counts().refusals, before);
}

TEST(AttemptTest, OutsideOfOneItIsCountedByTheNameThatItHasInTheSource) {
  reset();
  register_kernel();
  const auto of = [] { return counts().refusals[kReadable]; };
  const std::int64_t before = of();
  EXPECT_EQ(launch_it(), cudaErrorNotSupported);
  EXPECT_EQ(of(), before + 1);
  EXPECT_EQ(std::string(cudaGetErrorString(cudaGetLastError())),
            std::string("the virtual GPU runs no compiled kernel: ") + kReadable);
}

}  // namespace
}  // namespace ferry::vgpu
