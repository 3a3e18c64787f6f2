// The workers of a simulated pipeline: they take turns on one thread, each with a host clock of its
// own.
//
// Worker w is host thread w + 1. A task begins when its worker is free, its predecessors have
// ended, and the calling thread has submitted it. The calling thread continues when the last task
// ends. Tasks run in the order of the list, unless the machine has choices (sim/choices/choices.h).
// So without choices, the first error in the list is the first that happens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "shared/pipeline/workers.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

class SimWorkers {
 public:
  explicit SimWorkers(Machine& machine) : machine_(&machine) {}

  void run(const std::vector<WorkerTask>& tasks) {
    const Caller caller(*machine_);
    const Time given = machine_->host_now();
    std::vector<Time> ends(tasks.size());
    std::vector<bool> ran(tasks.size());
    const choices::Choices::Row row(machine_->choices());
    for (std::size_t turn = 0; turn < tasks.size(); ++turn) {
      const std::size_t next = machine_->has_choices() ? choose(tasks, ran) : turn;
      const WorkerTask& task = tasks[next];
      machine_->set_host_thread(static_cast<std::uint32_t>(task.worker + 1));
      machine_->host_not_before(given);
      for (const std::size_t before : task.after) {
        machine_->host_not_before(ends.at(before));
        machine_->touch(choices::Touched::kTask, before, choices::Access::kNeed);
      }
      task.run();
      machine_->touch(choices::Touched::kTask, next, choices::Access::kMake);
      ends[next] = machine_->host_now();
      ran[next] = true;
    }
    machine_->set_host_thread(caller.thread);
    for (const Time end : ends) machine_->host_not_before(end);
  }

 private:
  // Chooses among the tasks that may run. A worker takes its own tasks in order.
  std::size_t choose(const std::vector<WorkerTask>& tasks, const std::vector<bool>& ran) const {
    std::vector<std::size_t> ready;
    std::vector<std::uint32_t> actors;
    std::vector<std::size_t> workers;  // workers that have an earlier task
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (ran[i]) continue;
      const bool first =
          std::find(workers.begin(), workers.end(), tasks[i].worker) == workers.end();
      const bool free = std::all_of(tasks[i].after.begin(), tasks[i].after.end(),
                                    [&ran](std::size_t before) { return ran[before]; });
      if (first && free) {
        ready.push_back(i);
        actors.push_back(static_cast<std::uint32_t>(tasks[i].worker));
      }
      workers.push_back(tasks[i].worker);
    }
    return ready[machine_->turn(choices::ChoicePoint::kWorker, actors)];
  }

  struct Caller {
    explicit Caller(Machine& of) : machine(of), thread(of.host_thread()) {}
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    ~Caller() { machine.set_host_thread(thread); }
    Machine& machine;
    const std::uint32_t thread;
  };
  Machine* machine_;
};

static_assert(Workers<SimWorkers>);

}  // namespace ferry::sim
