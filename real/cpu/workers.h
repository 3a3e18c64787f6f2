// Worker streams: threads with a queue each, under one lock.
//
//   host      give f ── give g ──● record            wait(e) ── goes on, or throws f's error
//                │         │     :                     │
//   worker       ▼ f ───── ▼ g ──● e ....................
//
// An event is a place in a queue, so recording takes no task. What fails together is a section:
//
//  * of a stream whose tasks stand alone (a lane), what one thread gave it between two records. The
//    section's first error skips the rest of it, and the record that ended it carries the error.
//    Other sections run: one copy that failed is no reason to fail another.
//  * of a stream whose tasks build on each other, everything up to the wait that throws the error:
//    what was given until then is skipped, and every record carries the error from its place on.
//
// Waiting for an event that failed fails the section of the waiting stream.
//
// A brief task whose stream is idle is run by the thread that gives it, unless a pace bends the
// timing; all others are handed over.
//
// A thread starts with its stream's first task that is handed over, and ends with the Workers,
// which drain the queues. It blocks all signals but those that its own instructions raise
// (SIGSEGV …). After a fork the child has no workers: giving a task throws there.
//
// Thread-safe. A task must not throw away the Workers it runs on (mine() tells).
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
    // Runs in its place if the section has failed; may be empty, and must not throw.
    std::function<void(const std::exception_ptr&)> skipped = {};
    // Handing it over would cost more than running it: if its stream has nothing else to do, the
    // thread that gives it runs it.
    bool brief = false;
  };

  // Workers call `progress` when a task is done, outside the lock; it must not throw. A task that
  // its giver runs is over before anything can wait for it, so it calls nobody.
  Workers(std::shared_ptr<Pace> pace, std::function<void()> progress);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // `paced` false: its tasks run when they can, whatever the pace does to the others.
  CpuStream add(std::string name, Failure failure, bool paced = true);

  // Throws std::system_error if no thread can be started; the task is then not given.
  void give(const CpuStream& stream, Task task);
  CpuEvent record(const CpuStream& stream);
  // Work given to `stream` from now on follows the event. Throws the error of an event that is
  // known to have failed.
  void wait(const CpuStream& stream, const CpuEvent& event);
  // Blocks until the event is done, and throws its error.
  void wait(const CpuEvent& event);

  // The present ends of the streams, as events that carry no error.
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
