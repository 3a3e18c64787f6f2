// The functions that launch.py calls: they start the virtual GPU, begin, judge and end its log, and
// write what the run took. Those that can fail return null, or an error message that is valid until
// the next call.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "formats/atomic_file.h"
#include "formats/line_source.h"
#include "formats/text_file.h"
#include "scenarios/hardware.h"
#include "sim/check/log_check.h"
#include "sim/check/report_json.h"
#include "vgpu/operators/extensions.h"
#include "vgpu/operators/host_accesses.h"
#include "vgpu/operators/host_work.h"
#include "vgpu/operators/kernels.h"
#include "vgpu/operators/libtorch.h"
#include "vgpu/operators/unfilled.h"
#include "vgpu/operators/workspaces.h"
#include "vgpu/python/interpreter.h"
#include "vgpu/python/places.h"
#include "vgpu/python/run_log.h"
#include "vgpu/runtime/asking.h"
#include "vgpu/runtime/control.h"
#include "vgpu/time/timeline.h"

namespace ferry::vgpu {
namespace {

// The latest of each is never destroyed, because operators run until the process ends.
RunLog* run_log = nullptr;
Timeline* timeline = nullptr;

::pid_t process = 0;  // a forked child is not part of the run
// Logs that were begun after the first one. Whoever begins a log judges it.
struct {
  std::int64_t begun = 0;
  std::int64_t used = 0;    // those with an operation, without the latest
  bool first_used = false;  // the log before them had an operation
  // Those judged so far in which the host had a view of memory while work on it was pending.
  std::set<std::int64_t> unjudged;
} parts;

bool latest_is_used() { return parts.begun > 0 && run_log->is_used(); }

void forget_python_error() {
  const Interpreter interpreter;
  PyErr_Clear();
}

// Reads the settings that vgpu/run/child.cpp writes.
void start(const nlohmann::json& settings) {
  process = ::getpid();
  const Hardware card = read_hardware(settings.at("card").get<std::string>());
  set_device_name(card.name + " (no GPU: Ferry's virtual one)");
  if (card.compute_capability > 0) {
    set_compute_capability(static_cast<int>(card.compute_capability));
  }
  if (card.multiprocessors > 0) set_multiprocessors(static_cast<int>(card.multiprocessors));
  set_device_bytes(card.capacity_bytes, card.context_bytes);
  set_pinned_bytes(card.host_memory_bytes);
  set_devices(settings.at("cards").get<int>());
  keep_addresses(true);
  put_segments_upwards(settings.at("segments_go_up").get<bool>());
  run_log = new RunLog(settings.at("log").get<std::string>());
  timeline = new Timeline(card);
  if (const auto trace = settings.at("trace").get<std::string>(); !trace.empty()) {
    timeline->trace_to(trace);
  }
  set_clock(timeline, settings.at("timed").get<bool>());
  set_values(settings.at("values").get<KernelValues>());
  start_libtorch();
  install_kernels();
  watch_extensions(forget_python_error);
  keep_workspaces();
  find_places();
  set_tempo(static_cast<Tempo>(settings.at("tempo").get<int>()),
            settings.at("seed").get<std::uint64_t>());
  watch_host_accesses();
  count_host_work();
  set_listener(run_log);
  // The log is this process's; what a forked child does is not in it.
  ::pthread_atfork(nullptr, nullptr, [] { set_listener(nullptr); });
}

// Waits until autograd's thread of the device has dropped what its last backward left. It needs the
// interpreter to drop a Python object. If the interpreter is gone by then, the process aborts.
void settle_autograd() {
  const c10::AutoGradMode grad(true);
  try {
    const at::Tensor leaf = at::zeros({}, at::device(at::kCUDA)).requires_grad_();
    torch::autograd::backward({leaf}, {});
  } catch (const c10::Error&) {  // no memory is left, or the device has failed
  }
}

void begin_log(const std::string& path) {
  parts.used += latest_is_used() ? 1 : 0;
  parts.first_used = parts.first_used || (parts.begun == 0 && run_log->is_used());
  ++parts.begun;
  // An error here comes from work that was given before, and is reported to whoever gave it.
  cudaDeviceSynchronize();
  // Autograd's thread may still drop what its last backward left, so the listener changes in one
  // step.
  change_listener([&] {
    run_log->settle();  // before the next log begins, perhaps in the same file
    auto next = std::make_unique<RunLog>(path, *run_log);
    delete std::exchange(run_log, next.release());
    return run_log;
  });
}

nlohmann::json summarise(const char* out_of_memory) {
  const Counts counts = vgpu::counts();
  nlohmann::json json{{"used", run_log->is_used() || parts.first_used || parts.used > 0},
                      {"parts", parts.begun},
                      {"parts_used", parts.used + (latest_is_used() ? 1 : 0)},
                      {"parts_unjudged", parts.unjudged.size()},
                      {"out_of_memory", out_of_memory},
                      {"steps", nlohmann::json::array()},
                      {"devices", nlohmann::json::array()},
                      {"pinned_bytes", counts.pinned_bytes_peak},
                      {"refused", counts.refusals}};
  const ExtensionCalls extensions = extension_calls();
  json["stand_ins"] = extensions.by_stand_in;
  json["without_cuda_kernel"] = extensions.without_cuda_kernel;
  for (std::size_t device = 0; device < counts.device_bytes_peaks.size(); ++device) {
    json["devices"].push_back({{"allocated_bytes", allocated_bytes_peak(static_cast<int>(device))},
                               {"reserved_bytes", counts.device_bytes_peaks[device]}});
  }
  with_clock([&] {
    const TimeSummary summary = timeline->summary();
    json["run_ns"] = summary.total_ns;
    for (const StreamTime& step : summary.steps) {
      json["steps"].push_back({{"step_ns", step.total_ns},
                               {"kernels_ns", step.kernels_ns},
                               {"waits_ns", step.waits_ns},
                               {"host_ns", step.host_ns}});
    }
    timeline->write_trace();
  });
  return json;
}

nlohmann::ordered_json judge_log() {
  if (!run_log->is_used()) return check::to_json(check::LogReport());
  std::stringstream in;
  change_listener([&] {  // another thread may still free memory and log that
    run_log->settle();
    in << open_file(run_log->path()).rdbuf();
    return run_log;
  });
  LineSource lines(in, run_log->path());
  const check::LogReport report = check::check_log(lines);
  if (report.unjudged_views > 0 && parts.begun > 0) parts.unjudged.insert(parts.begun);
  return check::to_json(report);
}

// Runs the call. Returns null, or the message of its error, which is valid until the next call.
template <class Call>
const char* guarded(Call&& call) {
  static std::string message;
  try {
    call();
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* ferry_vgpu_start(const char* settings) {
  return guarded([&] { start(nlohmann::json::parse(settings)); });
}

// The script's step (forward, backward and update) has been issued.
void ferry_vgpu_end_step() {
  with_clock([] { timeline->end_step(); });
}

// Ends the run and writes what it took, by the card's time, to the file `summary`; "" writes
// nothing. `out_of_memory` is PyTorch's error if that ended the script, and "" otherwise. A forked
// child writes nothing.
const char* ferry_vgpu_finish(const char* summary, const char* out_of_memory) {
  return guarded([&] {
    if (::getpid() != process) return;
    set_listener(nullptr);
    run_log->settle();
    if (*summary != '\0') write_file(summary, summarise(out_of_memory).dump(-1, ' ', true));
    settle_autograd();
  });
}

// Waits for all work. From now on the log is this file. No other thread may use the GPU meanwhile.
const char* ferry_vgpu_begin(const char* log) {
  return guarded([&] { begin_log(log); });
}

// Counts a call of something unsupported, by this name.
void ferry_vgpu_note_refusal(const char* name) { note_refusal(name); }

// Call it when kernels were registered, or an operator was looked up.
const char* ferry_vgpu_look_for_extensions() { return guarded(look_for_extensions); }
// The operator's CPU kernel is in Python.
const char* ferry_vgpu_note_python_kernel(const char* name) {
  return guarded([&] { note_python_kernel(name); });
}
// The second operator computes in place of the first.
const char* ferry_vgpu_set_stand_in(const char* name, const char* by) {
  return guarded([&] { set_stand_in(name, by); });
}
// These note where the calling thread is in Python (vgpu/python/places.h).
void ferry_vgpu_note_place() { note_place(); }
void ferry_vgpu_begin_backward() { begin_backward(); }
void ferry_vgpu_end_backward() { end_backward(); }

// These begin and end a rehearsal of the calling thread (vgpu/runtime/control.h).
std::int64_t ferry_vgpu_begin_rehearsal() { return begin_rehearsal(); }
std::int64_t ferry_vgpu_end_rehearsal() { return end_rehearsal(); }

// While it is on, the calling thread fills large CPU tensors as well (vgpu/operators/unfilled.h).
void ferry_vgpu_fill_all(bool all) { fill_all(all); }

// Notes that this process, a forked child, asked for a device and has none (vgpu/runtime/asking.h).
void ferry_vgpu_note_asking() { note_asking(); }

// Returns JSON: the verdict on the log since the latest begin, or {"error": …}. It is valid until
// the next call.
const char* ferry_vgpu_judge() {
  static std::string verdict;
  const char* const error = guarded([] { verdict = judge_log().dump(-1, ' ', true); });
  if (error != nullptr) verdict = nlohmann::ordered_json{{"error", error}}.dump(-1, ' ', true);
  return verdict.c_str();
}

}  // extern "C"

}  // namespace ferry::vgpu
