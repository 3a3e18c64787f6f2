// The workers that run the stages, one for each device of a pipeline.
//
// Tasks come as one list, in which each comes after those that it needs. A worker runs its tasks in
// that order, and a task begins when all tasks in `after` are done. run() returns when all tasks
// are done. If a task throws, running tasks finish, no other task begins, and run() throws the
// error of the first failed task in the list.
//
// The simulator runs all workers on one thread; the LibTorch ones are threads (real/pipeline/).
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
