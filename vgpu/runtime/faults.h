// Counts the program's calls of entry points, and decides which of them fail.
//
// A call fails for one of three reasons. A test has planned that the nth call of the entry point
// fails. Or the device is broken, by a test or by a kernel that threw: then every call fails until
// a test repairs it, as after an asynchronous CUDA error. Or the entry point is not supported: then
// the call is rejected with an error and counted by its name.
//
// A planned failure happens once. While the device is broken, calls are counted but do not use up
// planned failures. A call is in a step if the core issued it (the calling thread's step is not
// kUser). The runtime's lock guards the class (runtime.h); any thread of the program may call it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>

#include "vgpu/runtime/control.h"

namespace ferry::vgpu {

class Faults {
 public:
  using Counts = std::map<std::string, std::int64_t>;

  void count_call(const char* name) { ++calls_[name]; }
  std::int64_t calls(const std::string& name) const;

  // Takes the error with which the call that begins now has to fail; cudaSuccess if it must not
  // fail.
  cudaError_t take_error(const char* name);

  // Makes the nth call from now on (counted from 0) of the entry point fail.
  void plan(const std::string& name, std::int64_t nth, cudaError_t error, Where where);
  bool is_planned(const std::string& name) const { return planned_.contains(name); }
  void forget_planned() { planned_.clear(); }

  void break_device(cudaError_t error) { broken_ = error; }  // cudaSuccess repairs it

  // Counts a call of something unsupported.
  void count_refusal(const std::string& name) { ++refusals_[name]; }
  const Counts& refusals() const { return refusals_; }

 private:
  struct Planned {
    std::int64_t left = 0;  // calls before the one that fails
    cudaError_t error = cudaSuccess;
    Where where = Where::kAnywhere;
  };

  Counts calls_;
  std::map<std::string, Planned> planned_;
  cudaError_t broken_ = cudaSuccess;
  Counts refusals_;
};

}  // namespace ferry::vgpu
