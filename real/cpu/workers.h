// Worker streams: threads with a queue each, all under one lock.
//
//   host      give f ── give g ──● record            wait(e) ── goes on, or throws f's error
//                │         │     :                     │
//   worker       ▼ f ───── ▼ g ──● e ....................
//
// An event is a position in a queue, so recording needs no task. Tasks that fail together form a
// section:
//
//  * In a stream whose tasks are independent (a lane), a section is what one thread gave it between
//    two records. The first error skips the rest of the section, and the record at its end carries
//    the error. Other sections still run, because one failed copy should not fail another.
//  * In a stream whose tasks depend on each other, a section reaches to the wait that throws the
//    error. Tasks given until then are skipped, and every record after the failure carries the
//    error.
//
// Waiting for an event that failed fails the section of the waiting stream.
//
// A brief task whose stream is idle runs on the thread that gives it, unless there is a pace. Other
// tasks are queued.
//
// A thread starts with the first queued task of its stream and ends with the Workers, which drain
// the queues first. It blocks all signals except those that its own instructions raise (SIGSEGV …).
// A child of fork has no workers: giving a task throws there.
//
// Thread-safe. A task must not destroy the Workers that it runs on; mine() says so.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "real/cpu/pace.h"
#include "real/cpu/stream.h"

namespace ferry::real {

class Workers {
 public:
  enum class Failure : std::uint8_t { kAlone, kTogether };

  struct Task {
    std::function<void()> run;
    // Called instead of `run` if the section has failed. May be empty; must not throw.
    std::function<void(const std::exception_ptr&)> skipped = {};
    // The task is so short that queuing it would cost more. If its stream is idle, the thread that
    // gives it runs it.
    bool brief = false;
  };

  // Workers call `progress` after each task, without the lock; it must not throw. It is not called
  // for a task that its giver runs, because nothing can be waiting for such a task.
  Workers(std::shared_ptr<Pace> pace, std::function<void()> progress);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // If `paced` is false, the tasks of the stream run when they can, whatever the pace does to
  // others.
  CpuStream add(std::string name, Failure failure, bool paced = true);

  // Throws std::system_error if no thread can be started. Then the task is not given.
  void give(const CpuStream& stream, Task task);
  CpuEvent record(const CpuStream& stream);
  // Makes work that is given to `stream` later wait for the event. Throws if the event is known to
  // have failed.
  void wait(const CpuStream& stream, const CpuEvent& event);
  // Blocks until the event is done, and throws its error.
  void wait(const CpuEvent& event);

  // Returns the present end of the stream, or of all streams, as events without errors.
  CpuEvent latest(const CpuStream& stream) const;
  std::vector<CpuEvent> latest() const;
  bool done(const CpuEvent& event) const;
  void await(const CpuEvent& event) noexcept;

  // Blocks until all tasks are done.
  void finish() noexcept;
  // Does the same, and ends the threads.
  void stop() noexcept;

  std::uint64_t id() const { return id_; }
  std::int64_t tasks() const;
  // True if the calling thread is one of these workers.
  bool mine() const;
  // True in a child of the process that has the threads.
  bool forked() const;

 private:
  struct Item {
    Task task;
    CpuEvent awaited;
    std::shared_ptr<Section> section;
    bool on_demand = false;
  };
  struct Stream {
    std::string name;
    Failure failure = Failure::kAlone;
    bool paced = true;
    std::deque<Item> queue;
    std::uint64_t given = 0;
    std::uint64_t done = 0;
    std::uint64_t wanted = 0;  // somebody waits for the tasks up to this one
    bool busy = false;
    std::map<std::thread::id, std::shared_ptr<Section>> sections;  // open ones; kTogether: one
    std::condition_variable wake;
    std::thread thread;
  };
  using Lock = std::unique_lock<std::mutex>;

  Stream& of(const CpuStream& stream) const;
  Stream& of(const CpuEvent& event) const { return of(event.stream); }
  static std::thread::id section_key(const Stream& stream);
  const std::shared_ptr<Section>& section(Stream& stream);
  static std::exception_ptr error(const CpuEvent& event);
  bool reached(const CpuEvent& event) const;
  void want(const CpuEvent& event);
  void block(Lock& lock, const CpuEvent& event);
  [[noreturn]] void raise(const CpuEvent& event);
  void push(Lock& lock, const CpuStream& stream, Item&& item);
  void check_process() const;
  void start(Stream& stream);
  void work(Stream& stream);
  bool runnable(const Stream& stream) const;
  bool run_here(Lock& lock, const CpuStream& stream, Item& item);
  void run_next(Lock& lock, Stream& stream);
  void run(Lock& lock, Stream& stream, Item&& item);

  const std::uint64_t id_;
  const std::shared_ptr<Pace> pace_;
  const std::function<void()> progress_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Stream>> streams_;
  pid_t process_ = 0;  // the process that has the threads; 0: none started
  bool stopping_ = false;
};

}  // namespace ferry::real
