#include "real/cpu/workers.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <stdexcept>
#include <utility>

namespace ferry::real {

namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> ids{0};
  return ++ids;
}

// The owner of this worker thread.
thread_local const void* thread_owner = nullptr;
thread_local const void* running_stream = nullptr;

// A new thread inherits the signal mask of the thread that starts it. Signals that a thread's own
// instructions raise stay unblocked: if they were blocked, they would end the process without
// calling the program's handlers.
class OthersSignalsBlocked {
 public:
  OthersSignalsBlocked() {
    sigset_t others;
    sigfillset(&others);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      sigdelset(&others, own);
    }
    pthread_sigmask(SIG_SETMASK, &others, &before_);
  }
  OthersSignalsBlocked(const OthersSignalsBlocked&) = delete;
  OthersSignalsBlocked& operator=(const OthersSignalsBlocked&) = delete;
  ~OthersSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Workers::Workers(std::shared_ptr<Pace> pace, std::function<void()> progress)
    : id_(next_id()), pace_(std::move(pace)), progress_(std::move(progress)) {}

Workers::~Workers() { stop(); }

CpuStream Workers::add(std::string name, Failure failure, bool paced) {
  auto stream = std::make_unique<Stream>();
  stream->name = std::move(name);
  stream->failure = failure;
  stream->paced = paced;
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
  return {id_, static_cast<std::int32_t>(streams_.size()) - 1};
}

// --- Calls of the host

void Workers::give(const CpuStream& stream, Task task) {
  Lock lock(mutex_);
  Item item{std::move(task), {}, section(of(stream))};
  if (!run_here(lock, stream, item)) push(lock, stream, std::move(item));
}

CpuEvent Workers::record(const CpuStream& stream) {
  const std::lock_guard lock(mutex_);
  Stream& on = of(stream);
  const auto begun = on.sections.find(section_key(on));
  if (begun == on.sections.end()) return {stream, on.given, nullptr};
  CpuEvent event{stream, on.given, begun->second};
  if (on.failure == Failure::kAlone) on.sections.erase(begun);
  return event;
}

void Workers::wait(const CpuStream& stream, const CpuEvent& event) {
  if (event.stream.is_inline() || event.stream == stream) return;
  Lock lock(mutex_);
  if (reached(event)) {
    if (error(event)) raise(event);
    return;
  }
  push(lock, stream, {{}, event, section(of(stream))});
}

void Workers::wait(const CpuEvent& event) {
  if (event.stream.is_inline()) return;
  Lock lock(mutex_);
  block(lock, event);
  if (error(event)) raise(event);
}

CpuEvent Workers::latest(const CpuStream& stream) const {
  const std::lock_guard lock(mutex_);
  return {stream, of(stream).given, nullptr};
}

std::vector<CpuEvent> Workers::latest() const {
  const std::lock_guard lock(mutex_);
  std::vector<CpuEvent> events;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    events.push_back({{id_, static_cast<std::int32_t>(i)}, streams_[i]->given, nullptr});
  }
  return events;
}

bool Workers::done(const CpuEvent& event) const {
  if (event.stream.is_inline()) return true;
  const std::lock_guard lock(mutex_);
  return reached(event);
}

void Workers::await(const CpuEvent& event) noexcept {
  if (event.stream.is_inline()) return;
  Lock lock(mutex_);
  block(lock, event);
}

// Waits for the streams one after the other, with what they wait for. With a pace, this is part of
// the schedule.
void Workers::finish() noexcept {
  Lock lock(mutex_);
  const auto idle = [](const std::unique_ptr<Stream>& stream) {
    return stream->queue.empty() && !stream->busy;
  };
  while (!std::all_of(streams_.begin(), streams_.end(), idle)) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      block(lock, {{id_, static_cast<std::int32_t>(i)}, streams_[i]->given, nullptr});
      changed_.wait(lock, [&] { return !streams_[i]->busy || !streams_[i]->queue.empty(); });
    }
  }
}

void Workers::stop() noexcept {
  finish();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& stream : streams_) stream->wake.notify_one();
  }
  for (const auto& stream : streams_) {
    if (stream->thread.joinable()) stream->thread.join();
  }
}

std::int64_t Workers::tasks() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t tasks = 0;
  for (const auto& stream : streams_) tasks += stream->given - stream->done;
  return static_cast<std::int64_t>(tasks);
}

bool Workers::mine() const { return thread_owner == this; }

bool Workers::forked() const {
  const std::lock_guard lock(mutex_);
  return process_ != 0 && process_ != getpid();
}

// --- Under the lock

Workers::Stream& Workers::of(const CpuStream& stream) const {
  if (stream.device != id_ || stream.index < 0) {
    throw std::logic_error("a stream or an event of another CPU device");
  }
  return *streams_[static_cast<std::size_t>(stream.index)];
}

std::thread::id Workers::section_key(const Stream& stream) {
  return stream.failure == Failure::kAlone ? std::this_thread::get_id() : std::thread::id();
}

const std::shared_ptr<Section>& Workers::section(Stream& stream) {
  std::shared_ptr<Section>& begun = stream.sections[section_key(stream)];
  if (!begun) begun = std::make_shared<Section>();
  return begun;
}

// Returns the error of an event that is done. A later failure in its section is not its error.
std::exception_ptr Workers::error(const CpuEvent& event) {
  const Section* section = event.section.get();
  return section && section->failed_at <= event.ordinal ? section->error : nullptr;
}

bool Workers::reached(const CpuEvent& event) const { return of(event).done >= event.ordinal; }

void Workers::want(const CpuEvent& event) {
  Stream& stream = of(event);
  if (stream.wanted >= event.ordinal) return;
  stream.wanted = event.ordinal;
  stream.wake.notify_one();
}

void Workers::block(Lock& lock, const CpuEvent& event) {
  want(event);
  changed_.wait(lock, [&] { return reached(event); });
}

void Workers::raise(const CpuEvent& event) {
  const std::exception_ptr cause = error(event);
  Stream& stream = of(event);
  // Work that is given from now on is not affected by the error.
  if (stream.failure == Failure::kTogether) {
    std::erase_if(stream.sections,
                  [&](const auto& begun) { return begun.second == event.section; });
  }
  std::rethrow_exception(cause);
}

// Returns true if the calling thread has run the item.
bool Workers::run_here(Lock& lock, const CpuStream& stream, Item& item) {
  Stream& on = of(stream);
  if (!item.task.brief || pace_ || on.busy || !on.queue.empty()) return false;
  check_process();
  on.given += 1;
  on.busy = true;
  run(lock, on, std::move(item));
  on.busy = false;
  changed_.notify_all();
  if (!on.queue.empty()) on.wake.notify_one();  // another thread gave it meanwhile
  return true;
}

void Workers::push(Lock& lock, const CpuStream& stream, Item&& item) {
  Stream& to = of(stream);
  start(to);
  const std::uint64_t ordinal = to.given + 1;
  const Timing timing = pace_ && to.paced ? pace_->timing(stream.index, ordinal) : Timing::kFree;
  item.on_demand = timing == Timing::kOnDemand;
  to.queue.push_back(std::move(item));
  to.given = ordinal;
  to.wake.notify_one();
  if (timing == Timing::kAtOnce && running_stream != &to) block(lock, {stream, ordinal, nullptr});
}

void Workers::check_process() const {
  if (process_ != 0 && process_ != getpid()) {
    throw std::runtime_error("a CPU device's workers stayed with the process that was forked");
  }
}

void Workers::start(Stream& stream) {
  check_process();
  if (stream.thread.joinable()) return;
  const OthersSignalsBlocked blocked;
  stream.thread = std::thread([this, &stream] { work(stream); });
  process_ = getpid();
}

// --- The threads

void Workers::work(Stream& stream) {
  thread_owner = this;
  running_stream = &stream;
  pthread_setname_np(pthread_self(), stream.name.substr(0, 15).c_str());
  Lock lock(mutex_);
  while (true) {
    stream.wake.wait(lock, [&] { return runnable(stream) || stopping_; });
    if (stream.queue.empty()) return;
    run_next(lock, stream);
  }
}

bool Workers::runnable(const Stream& stream) const {
  if (stream.queue.empty() || stream.busy) return false;
  return !stream.queue.front().on_demand || stream.wanted > stream.done || stopping_;
}

void Workers::run_next(Lock& lock, Stream& stream) {
  Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.busy = true;
  run(lock, stream, std::move(item));
  changed_.notify_all();
  lock.unlock();
  progress_();
  lock.lock();
  stream.busy = false;
  changed_.notify_all();
}

// Runs the next item of the stream on the calling thread. The stream is busy.
void Workers::run(Lock& lock, Stream& stream, Item&& item) {
  std::exception_ptr failed = item.section->error;
  if (!failed && !item.awaited.stream.is_inline()) {
    block(lock, item.awaited);
    failed = error(item.awaited);
  }
  lock.unlock();
  if (!failed && item.task.run) {
    try {
      item.task.run();
    } catch (...) {
      failed = std::current_exception();
    }
  } else if (failed && item.task.skipped) {
    item.task.skipped(failed);
  }
  item.task = {};  // destroy its captures before anybody learns that it is done
  lock.lock();
  stream.done += 1;
  if (failed && !item.section->error) {
    item.section->error = failed;
    item.section->failed_at = stream.done;
  }
  item.section.reset();
}

}  // namespace ferry::real
