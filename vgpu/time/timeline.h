// The simulated time of a run on the virtual GPU. `ferry run` reports it (vgpu/run/summary.h), and
// by default it also answers the program's queries. Whatever the program gives to its streams is
// also given to the simulator's engine (sim/gpu/engine.h).
//
// A kernel takes the time that the roofline says (scenarios/roofline.h). A copy takes the time that
// the link allows. The host has one clock for all threads. A launch moves it on by the card's
// launch time, and a wait to the end of the awaited work. A query moves it on by a microsecond, and
// by more each time if it is repeated, so that a loop that sleeps between queries ends. An operator
// that the CPU computes takes the time that follows from the host's rates in the card's file. A
// copy of memory that is not page-locked takes the time in which the host stages it. The time of
// Python itself is not included.
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

// The time of the first device's default stream in an interval, in nanoseconds. In the rest of the
// total it had no work.
struct StreamTime {
  std::int64_t total_ns = 0;
  std::int64_t kernels_ns = 0;  // includes the copies in that stream
  std::int64_t waits_ns = 0;    // waits for other streams
  std::int64_t host_ns = 0;     // without work, while the host computed or staged copies
  StreamTime operator-(const StreamTime& earlier) const;
};

struct TimeSummary {
  std::int64_t total_ns = 0;      // until the host and all work were done
  std::vector<StreamTime> steps;  // each from one end of a step to the next
};

class Timeline final : public Clock {
 public:
  explicit Timeline(Hardware hardware);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void issue(StreamId stream, int device, const Cost& cost, const char* name) override;
  void begin_graph(StreamId stream, int device) override;
  void end_graph() override;
  void allocated(int device, std::int64_t change) override;
  Mark record(StreamId stream, int device) override;
  void release(Mark mark) override;
  void wait(StreamId stream, int device, Mark mark) override;
  Answer host_asks(Mark mark) override;
  void host_waits(Mark mark) override;
  void host_waits(StreamId stream, int device) override;
  void host_computes(const KernelCost& cost) override;
  std::int64_t duration(const Cost& cost) const override;
  std::int64_t run_to_end(Mark mark) override;

  // trace_to() begins to record a trace for the file; call it before there is work. write_trace()
  // writes it, if there is one; call it after summary(). Both throw std::system_error.
  void trace_to(const std::filesystem::path& file);
  void write_trace();
  // The program's step ends with the work that the default stream has been given so far.
  void end_step();
  // Runs all work so far to its end and returns the times. The program may go on afterwards.
  TimeSummary summary();
  // A digest of the times of all operations (sim/gpu/engine.h).
  std::uint64_t digest() const { return engine_.digest(); }

 private:
  // Adds up what the default stream does.
  class Watch final : public sim::TraceSink {
   public:
    void completed(const sim::CompletedOp& op) override;
    // Call it in the order of time, and before work that was issued later completes.
    void host_works(sim::Time from, sim::Time to) { works_.emplace_back(from, to); }
    StreamId main{};
    std::vector<sim::OpIndex> step_ends;  // the records that end steps
    std::vector<StreamTime> ends;
    StreamTime so_far;
    std::optional<sim::StepTrace> trace;

   private:
    sim::Time worked_by_host(sim::Time from, sim::Time to);
    std::deque<std::pair<sim::Time, sim::Time>> works_;  // those that may overlap later operations
  };

  struct Device {
    sim::DeviceId id;
    sim::LaunchQueue queue;
    std::optional<StreamId> computes;  // the stream that got the latest kernel
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
  std::map<StreamId, StreamId> streams_;  // the runtime's stream to the engine's
  sim::Time host_ns_ = 0;
  bool in_graph_ = false;  // what is issued costs the host no launch
  sim::Time ask_ns_ = 0;
};

}  // namespace ferry::vgpu
