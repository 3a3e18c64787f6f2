// Training with offloaded activations: one guard around forward and backward.
//
//   ferry::Offload offload;
//   offload.exempt(*model);
//   for (...) {
//     ferry::OffloadGuard guard(offload);
//     auto loss = model->forward(x);
//     loss.backward();
//   }
//
// What autograd saves goes to the host over a side stream, and comes back before backward needs it;
// gradients are the same bits as without. On a CUDA device the copies run on streams of their own;
// on the CPU on worker threads, to memory or to a file (OffloadOptions::disk).
//
// A write that autograd does not see (through `.data()`, a raw pointer, another library) is not
// seen here either: backward then gets the old bytes where they were copied before it, else the
// new. Writes in place through autograd raise, as without.
//
// A guard marks the tensors that are *saved* on its thread while it lives; what was saved is served
// for as long as its graph lives. An Offload is a handle, copied freely; guards of one may be made
// on several threads; with a plan, one at a time.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/seam/options.h"

namespace torch::nn {
class Module;
}

namespace ferry {

// Bytes throughout.
struct OffloadOptions {
  OffloadOptions() = default;

  // Where the tensors live that move; others are kept as they are. None: wherever they live (with
  // a disk: on the CPU).
  TORCH_ARG(std::optional<torch::Device>, device) = std::nullopt;
  // Tensors that would move less are kept.
  TORCH_ARG(std::int64_t, min_bytes) = 1024;
  // How much of what is on its way to the host may still be on the device. This bound, prefetch
  // and hold follow the model by default: a sixteenth of what is on the host at once, at most 512
  // MiB.
  TORCH_ARG(std::int64_t, window) = kAutomatic;
  // The same, counted in saved tensors (as TRL does).
  TORCH_ARG(std::int64_t, window_tensors) = kUnlimited;
  // How much is brought back ahead of its use; 0: nothing.
  TORCH_ARG(std::int64_t, prefetch) = kAutomatic;
  // How much is held for further saves of the same storage; 0: nothing.
  TORCH_ARG(std::int64_t, hold) = kAutomatic;
  // A directory: the host tier is a file there, which no crash leaves behind. Empty: memory. CPU
  // only.
  TORCH_ARG(std::filesystem::path, disk);
  // The file's limit.
  TORCH_ARG(std::int64_t, disk_bytes_max) = kUnlimited;
  // With a disk: fixes glibc's malloc thresholds for the whole process, so that memory which is
  // freed leaves it. False: malloc is as the program has it.
  TORCH_ARG(bool, fix_malloc) = true;
  // Page-locked host memory. CUDA only.
  TORCH_ARG(bool, pinned) = true;
  TORCH_ARG(CopyStreams, copy_streams) = CopyStreams::kTwo;
  TORCH_ARG(ReloadPool, reload_pool) = ReloadPool::kConsumer;
  // Keep the decision log until Offload::take_log.
  TORCH_ARG(bool, log) = false;
  // Keep every op and copy with its times, for Offload::write_trace.
  TORCH_ARG(bool, trace) = false;
  // Is told once when page-locked memory runs short.
  TORCH_ARG(std::function<void(const std::string&)>, warn);
  // Is told once, after the first forward that was guarded, what was done and where. None:
  // LibTorch's log has it, at level INFO (TORCH_CPP_LOG_LEVEL=INFO shows it).
  TORCH_ARG(std::function<void(const std::string&)>, info);
};

struct OffloadLog {
  std::vector<Decision> decisions;
};

struct Plan;  // formats/plan.h

// The model saves other tensors than its plan says.
class PlanMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace offload_impl {
class State;
class Frame;
}  // namespace offload_impl

class Offload {
 public:
  // Throws std::invalid_argument where an option makes no sense, and c10::Error where the device is
  // not there.
  explicit Offload(OffloadOptions options = {});
  // Executes a plan: its choices, which of the calls of ferry::checkpoint recompute (by the order
  // in which a forward makes them) and what they keep, and its options in place of min_bytes,
  // window, window_tensors, prefetch, hold, pinned, copy_streams and reload_pool.
  Offload(const Plan& plan, OffloadOptions options);

  // What the module owns, or this tensor, is kept: parameters and buffers lie there anyway. A
  // tensor of the module's that gets another storage later is kept all the same.
  void exempt(const torch::nn::Module& module);
  void exempt(const torch::Tensor& tensor);

  // Counts since it was made; ferry::to_string(…) makes a line of them.
  OffloadStatistics statistics() const;
  // Counts of the step under way, or of the last one: since its guard was made.
  OffloadStatistics step_statistics() const;
  // What the core was given: the options above, or the plan's.
  const CoreOptions& core_options() const;
  // Whether nothing of it is left: no copy, no reference, no event.
  bool empty() const;

  // What was logged since the last call; empty without OffloadOptions::log.
  OffloadLog take_log();
  // The copies, and the ops that ran under its guards, as a trace for ui.perfetto.dev (Chrome's
  // JSON format), written whole or not at all. Needs OffloadOptions::trace.
  void write_trace(const std::filesystem::path& path) const;

 private:
  friend class OffloadGuard;
  std::shared_ptr<offload_impl::State> state_;
};

// One guard is one forward (and the backward after it): packs are counted from 0. With a plan, a
// saved tensor that is not the plan's throws ferry::PlanMismatch out of the op that saves it, and a
// segment that saves another number of tensors ferry::SegmentMismatch out of its checkpoint.
class OffloadGuard {
 public:
  explicit OffloadGuard(const Offload& offload);
  explicit OffloadGuard(OffloadOptions options = {});
  OffloadGuard(const OffloadGuard&) = delete;
  OffloadGuard& operator=(const OffloadGuard&) = delete;
  ~OffloadGuard();

  // The guard's Offload: for exempt(), statistics() and the log.
  Offload& offload() { return offload_; }

 private:
  Offload offload_;
  std::unique_ptr<offload_impl::Frame> frame_;
};

// `auto forward = ferry::run(planned);`
[[nodiscard]] inline OffloadGuard run(const Offload& offload) { return OffloadGuard(offload); }

// The saved tensors of a region are left alone: the output head, say.
class NoOffloadGuard {
 public:
  NoOffloadGuard();
  NoOffloadGuard(const NoOffloadGuard&) = delete;
  NoOffloadGuard& operator=(const NoOffloadGuard&) = delete;
  ~NoOffloadGuard();

 private:
  std::unique_ptr<offload_impl::Frame> frame_;
};

// Reads a plan file. Throws ferry::InputError with file and line.
Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options = {});

}  // namespace ferry
