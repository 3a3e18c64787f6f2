// The simulated time of a run on the virtual GPU: the simulator's engine (sim/gpu/engine.h) is
// given what the program gives to its streams.
//
// A kernel takes what the roofline says (scenarios/roofline.h), a copy what the link leaves it. The
// host is one clock for all threads, which a launch moves on by the card's launch time, a wait to
// the end of what is waited for, and a question by a microsecond (more where it is asked again and
// again, so that a loop that sleeps in between ends). What the CPU's operators compute takes what
// the card file's rates of a host say, and a copy of memory that is not page-locked the time in
// which the host copies it aside. What Python itself takes is not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/hardware.h"
#include "sim/gpu/engine.h"
#include "sim/gpu/launch_queue.h"
#include "sim/gpu/step_trace.h"
#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

// What the default stream of the first device did in some time, in nanoseconds; the rest of it, the
// stream had no work.
struct StreamTime {
  std::int64_t total_ns = 0;
  std::int64_t kernels_ns = 0;  // and the copies in that stream
  std::int64_t waits_ns = 0;    // for other streams
  std::int64_t host_ns = 0;     // without work, while the host computed or copied
  StreamTime operator-(const StreamTime& earlier) const;
};

struct TimeSummary {
  std::int64_t total_ns = 0;      // until the host and all work are done
  std::vector<StreamTime> steps;  // from each end of a step to the next
};

class Timeline final : public Clock {
 public:
  explicit Timeline(Hardware hardware);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void issue(StreamId stream, int device, const Cost& cost, const char* name) override;
  void allocated(int device, std::int64_t change) override;
  Mark record(StreamId stream, int device) override;
  void release(Mark mark) override;
  void wait(StreamId stream, int device, Mark mark) override;
  Answer host_asks(Mark mark) override;
  void host_waits(Mark mark) override;
  void host_waits(StreamId stream, int device) override;
  void host_computes(const KernelCost& cost) override;
  std::int64_t run_to_end(Mark mark) override;

  // What is done from now on goes to this trace file as well, once it is written. Before there is
  // work. They throw std::system_error.
  void trace_to(const std::filesystem::path& file);
  void write_trace();  // if there is one, after summary()
  // The program's step ends with what the default stream was given so far.
  void end_step();
  // All that was given so far, to its end. The program may go on.
  TimeSummary summary();
  // Of all operations' times (sim/gpu/engine.h).
  std::uint64_t digest() const { return engine_.digest(); }

 private:
  // Adds up what the default stream does.
  class Watch final : public sim::TraceSink {
   public:
    void completed(const sim::CompletedOp& op) override;
    // In the order of time; before what is asked for later is completed.
    void host_works(sim::Time from, sim::Time to) { works_.emplace_back(from, to); }
    StreamId main{};
    std::vector<sim::OpIndex> step_ends;  // of the records that end steps
    std::vector<StreamTime> ends;
    StreamTime so_far;
    std::optional<sim::StepTrace> trace;

   private:
    sim::Time worked_by_host(sim::Time from, sim::Time to);
    std::deque<std::pair<sim::Time, sim::Time>> works_;  // those that may meet what comes
  };

  struct Device {
    sim::DeviceId id;
    sim::LaunchQueue queue;
    std::optional<StreamId> computes;  // its stream that was given the latest kernel
  };

  Device& device(int number);
  StreamId on(StreamId stream, int device);
  sim::Time issue_time() const;
  sim::KernelTime time_of(const KernelCost& cost) const;
  void issue_copy(StreamId own, const CopyCost& copy);
  sim::Time aside_ns(const CopyCost& copy) const;
  void host_works(sim::Time ns);
  void name_device(std::uint32_t number);
  void name_stream(StreamId stream, StreamId own, int device);
  void launched(StreamId own, int device);

  Hardware hardware_;
  sim::Engine engine_;
  Watch watch_;
  std::deque<Device> devices_;
  std::map<StreamId, StreamId> streams_;  // the engine's, by the runtime's
  sim::Time host_ns_ = 0;
  sim::Time ask_ns_ = 0;
};

}  // namespace ferry::vgpu
