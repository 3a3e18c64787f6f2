#include "real/pipeline/worker_threads.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "real/autograd/below_autograd.h"
#include "real/autograd/cpu_generator.h"
#include "real/pipeline/task_log.h"

namespace ferry::real {

namespace {

std::uint64_t draw(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

at::Generator copy_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.clone();
}

}  // namespace

class WorkerThreads::Threads {
 public:
  Threads(std::size_t count, bool own_generators) : own_generators_(own_generators) {
    for (std::size_t worker = 0; worker < count; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(std::vector<WorkerTask> tasks) {
    const std::lock_guard one_at_a_time(running_);
    List list{std::move(tasks), {}, {}, false, threads_.size(), std::nullopt, false, {}, false};
    // Copies the caller's generator, because a model without random numbers must not advance it.
    if (own_generators_) list.seed = draw(copy_of(cpu_generator()));
    list.done.resize(list.tasks.size());
    list.errors.resize(list.tasks.size());
    list.seen = c10::impl::tls_is_dispatch_key_included(kBelowAutograd);
    if (own_generators_) {
      if (auto log = StreamLog::active()) list.log.emplace(std::move(log), list.tasks.size());
    }
    std::unique_lock lock(mutex_);
    list_ = &list;
    ++lists_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return list.busy == 0; });
    list_ = nullptr;
    if (list.log) list.log->end();
    if (list.drawn) draw(cpu_generator());
    for (const std::exception_ptr& error : list.errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  // The tasks given to run(). Everything except the tasks is guarded by the lock.
  struct List {
    std::vector<WorkerTask> tasks;
    std::vector<char> done;
    std::vector<std::exception_ptr> errors;
    bool failed;
    std::size_t busy;                   // workers that have not finished it
    std::optional<std::uint64_t> seed;  // seeds the workers' own generators
    bool drawn;
    std::optional<TaskLog> log;  // if threads are separate streams
    bool seen;                   // the caller's ops are intercepted, so the tasks' too
  };

  void work(std::size_t worker) {
    at::init_num_threads();
    std::unique_lock lock(mutex_);
    for (std::uint64_t seen = 0;;) {
      changed_.wait(lock, [&] { return stopping_ || lists_ != seen; });
      if (stopping_) return;
      seen = lists_;
      std::optional<OwnCpuGenerator> own;
      if (list_->seed) own.emplace(at::detail::createCPUGenerator(*list_->seed + worker));
      work_on(*list_, worker, lock);
      list_->drawn |= own && own->drawn();
      own.reset();
      --list_->busy;
      changed_.notify_all();
    }
  }

  void work_on(List& list, std::size_t worker, std::unique_lock<std::mutex>& lock) {
    std::optional<c10::impl::IncludeDispatchKeyGuard> seen;
    if (list.seen) seen.emplace(kBelowAutograd);
    std::optional<StreamLog::ComputeThread> named;
    if (list.log) {
      named.emplace(list.log->log(), worker);
      list.log->begin();
    }
    for (std::size_t i = 0; i < list.tasks.size(); ++i) {
      const WorkerTask& task = list.tasks[i];
      if (task.worker != worker) continue;
      changed_.wait(lock, [&] {
        return list.failed || std::ranges::all_of(task.after, [&](std::size_t before) {
                 return list.done[before] != 0;
               });
      });
      if (list.failed) return;
      lock.unlock();
      std::exception_ptr error;
      try {
        if (list.log) list.log->before(task);
        task.run();
        if (list.log) list.log->after(i);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      list.done[i] = error ? 0 : 1;
      list.failed |= error != nullptr;
      list.errors[i] = std::move(error);
      changed_.notify_all();
    }
  }

  const bool own_generators_;
  std::mutex running_;
  std::mutex mutex_;
  std::condition_variable changed_;
  List* list_ = nullptr;
  std::uint64_t lists_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

WorkerThreads::WorkerThreads(std::size_t count, bool own_generators)
    : threads_(std::make_shared<Threads>(count, own_generators)) {}

void WorkerThreads::run(std::vector<WorkerTask> tasks) const { threads_->run(std::move(tasks)); }

}  // namespace ferry::real
