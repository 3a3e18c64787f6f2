// The workers of a simulated pipeline: turns of one thread, each with a host clock of its own.
//
// Worker w is host thread w + 1. A task begins when its worker is free, all that it comes after has
// ended, and the calling thread has given it; the calling thread goes on when the last one ends.
// Tasks run in the order of the list, so an error that comes first there is the first that happens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "shared/pipeline/workers.h"
#include "sim/machine.h"

namespace ferry::sim {

class SimWorkers {
 public:
  explicit SimWorkers(Machine& machine) : machine_(&machine) {}

  void run(const std::vector<WorkerTask>& tasks) {
    const Caller caller(*machine_);
    const Time given = machine_->host_now();
    std::vector<Time> ends;
    for (const WorkerTask& task : tasks) {
      machine_->set_host_thread(static_cast<std::uint32_t>(task.worker + 1));
      machine_->host_not_before(given);
      for (const std::size_t before : task.after) machine_->host_not_before(ends.at(before));
      task.run();
      ends.push_back(machine_->host_now());
    }
    machine_->set_host_thread(caller.thread);
    for (const Time end : ends) machine_->host_not_before(end);
  }

 private:
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
