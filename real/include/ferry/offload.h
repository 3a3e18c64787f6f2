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
// Tensors that autograd saves go to the host over a side stream, and come back before backward
// needs them; gradients are the same bits as without. On a CUDA device the copies run on streams of
// their own; on the CPU on worker threads, to memory or to a file (OffloadOptions::disk).
//
// A write that autograd does not see (through `.data()`, a raw pointer, another library) is not
// seen here either: backward then gets the old bytes if they were copied before it, else the new.
// Writes in place through autograd raise, as without.
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
#include <string>
#include <vector>

#include "ferry/hooks.h"
#include "shared/seam/error.h"
#include "shared/seam/options.h"

namespace torch::nn {
class Module;
}

namespace ferry {

// What becomes of what a forward saves that is not the plan's, for its batch has other shapes.
enum class OtherShapes : std::uint8_t {
  kRaise,    // PlanMismatch is thrown
  kOffload,  // moves, as without a plan
  kKeep,     // stays where it is
};

// Sizes are in bytes. Python's torch_ferry.offload and `ferry train` have the same names where they
// have the option.
struct OffloadOptions {
  OffloadOptions() = default;

  // Only tensors on this device are offloaded; others are kept as they are. None: all devices (with
  // a disk: the CPU).
  TORCH_ARG(std::optional<torch::Device>, device) = std::nullopt;
  // Tensors with fewer bytes to move are kept.
  TORCH_ARG(std::int64_t, min_bytes) = 1024;
  // The most bytes on their way to the host that may still be on the device. By default this bound,
  // prefetch and hold follow the model: a sixteenth of what is on the host at once, at most 512
  // MiB.
  TORCH_ARG(std::int64_t, window) = kAutomatic;
  // The same, counted in saved tensors (as TRL does).
  TORCH_ARG(std::int64_t, window_tensors) = kUnlimited;
  // The most bytes to bring back before their use; 0: none.
  TORCH_ARG(std::int64_t, prefetch) = kAutomatic;
  // How many saved tensors ahead of backward something may be brought back, in the order of saving.
  // What the window still has of more distant ones leaves when backward begins.
  TORCH_ARG(std::int64_t, prefetch_tensors) = kUnlimited;
  // The most bytes to hold for further saves of the same storage; 0: none.
  TORCH_ARG(std::int64_t, hold) = kAutomatic;
  // A directory: the host tier is a file in it, which no crash leaves behind. Empty: memory. CPU
  // only.
  TORCH_ARG(std::filesystem::path, disk);
  // The limit of the file.
  TORCH_ARG(std::int64_t, disk_bytes_max) = kUnlimited;
  // A tensor for which the host side has no room (the file's limit, a full disk, no memory) is
  // kept. False: the error is thrown.
  TORCH_ARG(bool, keep_when_full) = false;
  // With a disk: fixes glibc's malloc thresholds for the whole process, so that freed memory leaves
  // it. False: leaves malloc as it is.
  TORCH_ARG(bool, fix_malloc) = true;
  // Page-locked host memory. CUDA only.
  TORCH_ARG(bool, pinned) = true;
  TORCH_ARG(CopyStreams, copy_streams) = CopyStreams::kTwo;
  TORCH_ARG(ReloadPool, reload_pool) = ReloadPool::kConsumer;
  // With a plan: of a forward whose saved tensors differ from the plan's in their sizes alone, and
  // of any other difference once a forward was the plan's (a mask, where a batch has padding).
  TORCH_ARG(OtherShapes, other_shapes) = OtherShapes::kRaise;
  // Keep the decision log until Offload::take_log is called.
  TORCH_ARG(bool, log) = false;
  // Keep every op and copy with its times, for Offload::write_trace.
  TORCH_ARG(bool, trace) = false;
  // Called once when page-locked memory runs short, and once for each device whose allocator has
  // other options than a plan is for (without this, that goes to LibTorch's log, at WARNING).
  TORCH_ARG(std::function<void(const std::string&)>, warn);
  // Called once, after the first guarded forward, with what was done and where. None: writes to
  // LibTorch's log at level INFO (TORCH_CPP_LOG_LEVEL=INFO shows it).
  TORCH_ARG(std::function<void(const std::string&)>, info);
};

struct OffloadLog {
  std::vector<Decision> decisions;
};

struct Plan;  // formats/plan.h

// The model saves other tensors than its plan lists.
class PlanMismatch : public Error {
 public:
  using Error::Error;
};

namespace real {
class OffloadSession;  // what an Offload is a handle of
}

// Bytes that were in use at most while an Offload moved what is saved, and at least so many had
// nothing moved: of its CUDA devices' allocators, or with a disk of the process. Zeros: not known,
// as on a CPU without a disk, where what moves stays in the process's memory.
struct OffloadMemory {
  std::int64_t peak_bytes = 0;
  std::int64_t peak_without_bytes = 0;
};
// "peak memory 3052.1 MiB, without moving at least 9310.4 MiB"; empty: not known.
std::string to_string(const OffloadMemory& memory);

class Offload {
 public:
  // Throws ValueError if an option makes no sense, and c10::Error if the device does not
  // exist.
  explicit Offload(OffloadOptions options = {});
  // Executes a plan: its choices, which of the calls of ferry::checkpoint recompute (by the order
  // in which a forward makes them) and what they keep, which operators run again in backward (by
  // their places in the forward, on the guard's thread), and its options in place of min_bytes,
  // window, window_tensors, prefetch, prefetch_tensors, hold, pinned, copy_streams and reload_pool.
  Offload(const Plan& plan, OffloadOptions options);

  // Tensors that the module owns, or this tensor, are kept: parameters and buffers occupy device
  // memory anyway. One that gets another storage later is still kept.
  void exempt(const torch::nn::Module& module);
  void exempt(const torch::Tensor& tensor);

  // Counts since construction; ferry::to_string(…) makes a line of them.
  OffloadStatistics statistics() const;
  // Counts of the present step, or of the last one: since its guard was made.
  OffloadStatistics step_statistics() const;
  // Since construction.
  OffloadMemory memory() const;
  // True if all that moved stayed in this process's memory: on a CPU, without a disk.
  bool saves_nothing() const;
  // The core's options: those above, or the plan's.
  const CoreOptions& core_options() const;
  // True if nothing is left: no copy, no reference, no event.
  bool empty() const;
  // Forwards that were not the plan's, as other_shapes allows them.
  std::int64_t other_forwards() const;

  // The log since the last call; empty without OffloadOptions::log.
  OffloadLog take_log();
  // Writes the copies, and the ops that ran under its guards, as a trace for ui.perfetto.dev
  // (Chrome's JSON format), whole or not at all. Needs OffloadOptions::trace.
  void write_trace(const std::filesystem::path& path) const;

 private:
  friend class OffloadGuard;
  std::shared_ptr<real::OffloadSession> session_;
};

// One guard is one forward (and the backward after it): packs are counted from 0. With a plan, a
// saved tensor that is not the plan's throws ferry::PlanMismatch out of the op that saves it, as
// does an op where the plan's spans have another; a segment that saves another number of tensors
// throws ferry::SegmentMismatch out of its checkpoint. What a forward lacks is told by the next
// guard.
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
  class Forward;

  Offload offload_;
  std::unique_ptr<Forward> forward_;
};

// Use: `auto forward = ferry::run(planned);`
[[nodiscard]] inline OffloadGuard run(const Offload& offload) { return OffloadGuard(offload); }

// Leaves the saved tensors of a region alone: of the output head, say.
class NoOffloadGuard {
 public:
  NoOffloadGuard() = default;

 private:
  NoSavedTensorsHooks none_;
};

// Reads a plan file. Throws ValueError with file and line.
Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options = {});

}  // namespace ferry
