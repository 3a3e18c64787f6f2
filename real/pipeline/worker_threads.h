// The workers of a pipeline (shared/pipeline/workers.h) as threads, one for each device.
//
// They start with the first handle and are joined with the last. One run at a time: a second caller
// waits. What a task throws is caught on its thread and thrown where run() was called; the threads
// go on. A task must not call run() of the workers that run it.
//
// Each thread computes with as many threads of LibTorch's as the program asked for
// (at::set_num_threads), so that its bits are those of the calling thread. Where they are several
// on the CPU, each draws from a random generator of its own (real/autograd/cpu_generator.h), which
// begins a run as the caller's generator says; that one moves on where a worker has drawn.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "shared/pipeline/workers.h"

namespace ferry::real {

class WorkerThreads {
 public:
  explicit WorkerThreads(std::size_t count, bool own_generators = false);
  // Every task names one of the workers, and waits for earlier tasks only.
  void run(std::vector<WorkerTask> tasks) const;

 private:
  class Threads;
  std::shared_ptr<Threads> threads_;
};

static_assert(Workers<WorkerThreads>);

}  // namespace ferry::real
