// The workers that run the stages, one for each device of a pipeline.
//
// Tasks are given as one list, in an order in which each comes after those that it needs. A worker
// runs its own in that order; a task begins when all of `after` are done. run() returns when every
// task is done. If a task throws, running tasks finish, no further task begins, and run() throws
// the error of the first failed task in the list.
//
// The simulator's workers are turns of one thread; the real ones are threads (real/pipeline/).
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <vector>

namespace ferry {

struct WorkerTask {
  std::size_t worker = 0;
  std::vector<std::size_t> after;  // earlier tasks of the list, of any worker
  std::function<void()> run;
};

template <class W>
concept Workers = requires(W workers, std::vector<WorkerTask> tasks) {
  requires std::copyable<W>;
  { workers.run(std::move(tasks)) } -> std::same_as<void>;
};

}  // namespace ferry
