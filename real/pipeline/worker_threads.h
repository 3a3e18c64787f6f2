// The workers of a pipeline (shared/pipeline/workers.h) as threads, one for each device.
//
// The threads start with the first handle and are joined with the last. Calls of run() execute one
// after the other. If a task throws, run() throws the error; the threads go on. A task must not
// call run() of its own workers.
//
// Each thread computes with as many LibTorch threads as the program has set (at::set_num_threads),
// so its results have the same bits as on the calling thread. If several are on the CPU, each has
// its own random generator (real/autograd/cpu_generator.h), seeded from the caller's generator at
// each run. The caller's generator advances if a worker used random numbers.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "shared/pipeline/workers.h"

namespace ferry::real {

class WorkerThreads {
 public:
  explicit WorkerThreads(std::size_t count, bool own_generators = false);
  // Every task names one of the workers, and depends on earlier tasks only.
  void run(std::vector<WorkerTask> tasks) const;

 private:
  class Threads;
  std::shared_ptr<Threads> threads_;
};

static_assert(Workers<WorkerThreads>);

}  // namespace ferry::real
