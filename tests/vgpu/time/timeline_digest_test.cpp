// What a simulated step gives to its streams, given to CUDA's entry points instead: the same
// operations at the same times.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "scenarios/hardware.h"
#include "scenarios/paths.h"
#include "sim/gpu/step_trace.h"
#include "sim/run/simulation.h"
#include "vgpu/runtime/control.h"
#include "vgpu/time/timeline.h"

namespace ferry::vgpu {
namespace {

constexpr std::uint64_t kHostBase = std::uint64_t{1} << 60;  // as in sim/check/hazard.h

using Durations = std::map<StreamId, std::deque<std::int64_t>>;  // of what each stream ran, in ns

Durations durations_of(const std::filesystem::path& trace) {
  std::ifstream in(trace);
  Durations durations;
  const nlohmann::json json = nlohmann::json::parse(in);
  for (const nlohmann::json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const auto stream = StreamId{event.at("tid").get<std::uint32_t>()};
    durations[stream].push_back(std::llround(1000 * event.at("dur").get<double>()));
  }
  return durations;
}

// The host's calls.
struct Call {
  StreamOpKind kind{};
  CopyKind copy{};
  StreamId stream{};
  EventId event{};
  std::size_t bytes = 0;      // of a copy
  std::uint64_t address = 0;  // of a block
};

class Calls final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    all.push_back({op.kind, op.copy, op.stream, op.event,
                   op.kind == StreamOpKind::kCopy ? op.reads[0].bytes : 0, op.range.address});
  }
  // What is freed after the last of a step's work no longer counts.
  void end() {
    while (all.back().kind == StreamOpKind::kFree) all.pop_back();
  }
  std::vector<Call> all;
};

// By the card's link, and with kernels that take a nanosecond a FLOP: copies slow none of them, for
// the recorded times have that already.
Hardware with_kernels_as_told(Hardware card) {
  card.flops_per_us.fill(1000);
  card.matmul_percent = 100;
  card.kernel_min_ns = 0;
  return card;
}

class Caller {
 public:
  explicit Caller(Durations durations) : durations_(std::move(durations)) {
    cudaMalloc(&device_, kMost);
    cudaHostAlloc(&host_, kMost, 0);
  }
  ~Caller() {
    cudaDeviceSynchronize();
    for (const auto& [id, event] : events_) cudaEventDestroy(event);
    for (const auto& [id, stream] : streams_) cudaStreamDestroy(stream);
    cudaFree(device_);
    cudaFreeHost(host_);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void operator()(const Call& call) {
    switch (call.kind) {
      case StreamOpKind::kKernel:
        return kernel(call.stream);
      case StreamOpKind::kCopy:
        return copy(call);
      case StreamOpKind::kRecord:
        ASSERT_EQ(cudaEventRecord(event(call.event), stream(call.stream)), cudaSuccess);
        return;
      case StreamOpKind::kWait:
        ASSERT_EQ(cudaStreamWaitEvent(stream(call.stream), event(call.event), 0), cudaSuccess);
        return;
      case StreamOpKind::kEventSync:
        ASSERT_EQ(cudaEventSynchronize(event(call.event)), cudaSuccess);
        return;
      case StreamOpKind::kStreamSync:
        ASSERT_EQ(cudaStreamSynchronize(stream(call.stream)), cudaSuccess);
        return;
      case StreamOpKind::kAlloc:
        blocks_[call.address] = {call.stream, {}};
        return;
      case StreamOpKind::kRecordUse:
        if (call.stream != blocks_[call.address].owner) {
          blocks_[call.address].users.insert(call.stream);
        }
        return;
      case StreamOpKind::kFree:
        return free(call.address);
      default:
        FAIL() << "an operation that a simulated step does not have";
    }
  }

 private:
  static constexpr std::size_t kMost = std::size_t{8} << 30;

  void kernel(StreamId on) {
    launch(
        stream(on), "kernel", {}, {}, [] {}, KernelCost{.flops = next_duration(on)});
  }
  void copy(const Call& call) {
    if (call.copy == CopyKind::kDeviceToDevice) return kernel(call.stream);
    next_duration(call.stream);  // the link says how long
    ASSERT_LE(call.bytes, kMost);
    const bool out = call.copy == CopyKind::kDeviceToHost;
    ASSERT_EQ(
        cudaMemcpyAsync(out ? host_ : device_, out ? device_ : host_, call.bytes,
                        out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream(call.stream)),
        cudaSuccess);
  }
  // As PyTorch's allocator asks who else used a block: by an event on each of those streams. Host
  // memory has the events of its copies.
  void free(std::uint64_t address) {
    for (const StreamId user : blocks_[address].users) {
      if (address >= kHostBase) break;
      cudaEvent_t used = nullptr;
      cudaEventCreateWithFlags(&used, cudaEventDisableTiming);
      EXPECT_EQ(cudaEventRecord(used, stream(user)), cudaSuccess);
      cudaEventDestroy(used);
    }
    blocks_.erase(address);
  }
  std::int64_t next_duration(StreamId on) {
    std::deque<std::int64_t>& rest = durations_[on];
    EXPECT_FALSE(rest.empty());
    const std::int64_t next = rest.empty() ? 0 : rest.front();
    if (!rest.empty()) rest.pop_front();
    return next;
  }
  cudaStream_t stream(StreamId id) {
    cudaStream_t& stream = streams_[id];
    if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
  }
  cudaEvent_t event(EventId id) {
    cudaEvent_t& event = events_[id];
    if (event == nullptr) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    return event;
  }

  struct Block {
    StreamId owner{};
    std::set<StreamId> users;
  };

  Durations durations_;
  std::map<std::uint64_t, Block> blocks_;
  void* device_ = nullptr;
  void* host_ = nullptr;
  std::map<StreamId, cudaStream_t> streams_;
  std::map<EventId, cudaEvent_t> events_;
};

class TimelineDigestTest : public testing::TestWithParam<std::string> {
 protected:
  TimelineDigestTest() {
    set_device_bytes(std::int64_t{16} << 30);
    set_pinned_bytes(std::int64_t{16} << 30);
    set_values(KernelValues::kZeros);
  }
  ~TimelineDigestTest() override {
    set_clock(nullptr, false);
    set_values(KernelValues::kComputed);
    reset();
  }

  void expect_equal(const sim::SimulationOptions& policy) {
    const Program program = read_program(
        std::filesystem::path(find_shipped("program", "programs", ".jsonl", GetParam())));
    const Hardware card = read_hardware(find_shipped("hardware", "hardware", ".toml", "rtx4090"));
    const std::filesystem::path file =
        std::filesystem::path(testing::TempDir()) / ("recorded_" + GetParam() + ".json");
    Calls calls;
    sim::StepTrace trace(file);
    sim::SimulationOptions options = policy;
    options.consumers.push_back(&calls);
    options.trace = &trace;
    const sim::Simulation simulated = sim::simulate(program, card, options);
    trace.commit();
    calls.end();

    Timeline timeline(with_kernels_as_told(card));
    set_clock(&timeline, true);
    {
      Caller caller(durations_of(file));
      for (const Call& call : calls.all) {
        caller(call);
        if (HasFatalFailure()) return;
      }
      EXPECT_EQ(timeline.summary().total_ns, simulated.step_ns);
      EXPECT_EQ(timeline.digest(), simulated.digest);
      EXPECT_NE(timeline.digest(), 0u);
    }
    std::filesystem::remove(file);
  }
};

TEST_P(TimelineDigestTest, HasTheSimulatedStepsDigestWhereAllIsKept) { expect_equal({}); }

TEST_P(TimelineDigestTest, HasTheSimulatedStepsDigestWhereAllIsOffloaded) {
  sim::SimulationOptions offload;
  offload.offload.emplace();
  expect_equal(offload);
}

INSTANTIATE_TEST_SUITE_P(Shipped, TimelineDigestTest, testing::Values("gpt2", "unet", "llama3-8b"),
                         [](const auto& info) {
                           return info.param == "llama3-8b" ? "llama3_8b" : info.param;
                         });

}  // namespace
}  // namespace ferry::vgpu
