// The calls that a program makes of the entry points, and those that fail.
//
// Three things fail a call. A test has planned that the nth call of an entry point does. The device
// is broken, by a test or by a kernel that threw: then every call fails until a test mends it, as
// after an asynchronous error of CUDA's. Or the entry point is not there: then the call is refused,
// and counted by its name.
//
// One that is planned fails once. Of a broken device every call is counted, and none uses up what
// is planned. A call in a step is one that the core issued (the calling thread's step is not
// kUser). The runtime's lock guards it all (runtime.h), and any thread of the program calls it.
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

  // A call of the entry point begins.
  void count_call(const char* name) { ++calls_[name]; }
  std::int64_t calls(const std::string& name) const;

  // Takes the error that the call which begins has to fail with; cudaSuccess: it does not fail.
  cudaError_t take_error(const char* name);

  // The nth call of the entry point from now on, from 0, fails.
  void plan(const std::string& name, std::int64_t nth, cudaError_t error, Where where);
  bool is_planned(const std::string& name) const { return planned_.contains(name); }
  void forget_planned() { planned_.clear(); }

  void break_device(cudaError_t error) { broken_ = error; }  // cudaSuccess: it is whole again

  // What was called is not there.
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
