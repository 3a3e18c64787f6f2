// Offloads activations during training: put one guard around forward and backward.
//
//   ferry::Offload offload;
//   offload.exempt(*model);
//   for (...) {
//     ferry::OffloadGuard guard(offload);
//     auto loss = model->forward(x);
//     loss.backward();
//   }
//
// Each tensor that autograd saves is copied to the host on a side stream, and is back before
// backward needs it. Gradients have the same bits as without a guard. On a CUDA device the copies
// run on their own streams. On the CPU they run on worker threads, to memory or to a file
// (OffloadOptions::disk).
//
// If a saved tensor is written in place through autograd, backward throws, as without Ferry. Ferry
// does not see a write that autograd does not see (through `.data()`, a raw pointer, or another
// library): backward then reads the old bytes if they were copied before the write, else the new
// ones.
//
// A guard affects tensors that are *saved* on its thread while it lives; they can be unpacked as
// long as their graph lives. An Offload is a handle that can be copied freely. Several threads may
// have guards of one Offload at once; with a plan, only one guard at a time.
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

// The treatment of saved tensors if a forward does not match the plan, because its batch has other
// shapes.
enum class OtherShapes : std::uint8_t {
  kRaise,    // throw PlanMismatch
  kOffload,  // offload them as without a plan
  kKeep,     // keep them on the device
};

// Options of an Offload. Sizes are in bytes. Python's torch_ferry.offload and `ferry train` use the
// same names.
struct OffloadOptions {
  OffloadOptions() = default;

  // Offload only the tensors on this device. None: those on all devices; with a disk, those on the
  // CPU.
  TORCH_ARG(std::optional<torch::Device>, device) = std::nullopt;
  // Keep tensors with fewer bytes than this.
  TORCH_ARG(std::int64_t, min_bytes) = 1024;
  // The most bytes that may still be on the device while they are copied to the host. The default
  // of this bound, and of prefetch and hold, is a sixteenth of the bytes that are on the host at
  // once, and at most 512 MiB.
  TORCH_ARG(std::int64_t, window) = kAutomatic;
  // The same bound, counted in saved tensors, as TRL does.
  TORCH_ARG(std::int64_t, window_tensors) = kUnlimited;
  // The most bytes to copy back before backward needs them. 0: none.
  TORCH_ARG(std::int64_t, prefetch) = kAutomatic;
  // How many saved tensors ahead of backward a tensor may be copied back, in the order of saving.
  // When backward begins, tensors in the window that are further away leave the device.
  TORCH_ARG(std::int64_t, prefetch_tensors) = kUnlimited;
  // The most bytes to hold on the device for further saves of the same storage. 0: none.
  TORCH_ARG(std::int64_t, hold) = kAutomatic;
  // A directory, for the CPU only. Tensors are stored in a file in it, which disappears even after
  // a crash. Empty: tensors are stored in memory.
  TORCH_ARG(std::filesystem::path, disk);
  // The largest size of that file.
  TORCH_ARG(std::int64_t, disk_bytes_max) = kUnlimited;
  // If the host has no room for a tensor (the file's limit, a full disk, no memory), keep the
  // tensor. If false, the error is thrown.
  TORCH_ARG(bool, keep_when_full) = false;
  // With a disk: set glibc's malloc thresholds for the whole process, so that freed memory goes
  // back to the system. If false, malloc is not changed.
  TORCH_ARG(bool, fix_malloc) = true;
  // Use page-locked host memory. Only for CUDA.
  TORCH_ARG(bool, pinned) = true;
  TORCH_ARG(CopyStreams, copy_streams) = CopyStreams::kTwo;
  TORCH_ARG(ReloadPool, reload_pool) = ReloadPool::kConsumer;
  // With a plan: what to do if only the sizes of the saved tensors differ from the plan. Once a
  // forward has matched the plan, it also applies to any other difference, such as the mask of a
  // batch with padding.
  TORCH_ARG(OtherShapes, other_shapes) = OtherShapes::kRaise;
  // Record the decisions, for Offload::take_decisions.
  TORCH_ARG(bool, decisions) = false;
  // Record every op and copy with its times, for Offload::write_trace.
  TORCH_ARG(bool, trace) = false;
  // Called once if page-locked memory runs short, and once for each device whose allocator has
  // other options than the plan. Without it, the warning about allocators goes to LibTorch's log
  // (WARNING).
  TORCH_ARG(std::function<void(const std::string&)>, warn);
  // Called once, after the first guarded forward, with a text that says what was offloaded where.
  // If empty, the text goes to LibTorch's log at level INFO (TORCH_CPP_LOG_LEVEL=INFO shows it).
  TORCH_ARG(std::function<void(const std::string&)>, info);
};

struct Plan;  // formats/plan.h

// The model saves other tensors than its plan lists.
class PlanMismatch : public Error {
 public:
  using Error::Error;
};

namespace real {
class OffloadSession;  // an Offload is a handle of it
}

// The most bytes that were in use during offloading, and a lower bound of the most bytes without
// it. They are the bytes of the CUDA allocators, or with a disk of the process. Both are zero if
// unknown, as on a CPU without a disk, where offloaded tensors stay in the memory of the process.
struct OffloadMemory {
  std::int64_t peak_bytes = 0;
  std::int64_t peak_without_bytes = 0;
};
// Returns "peak memory 3052.1 MiB, without moving at least 9310.4 MiB", or an empty text if
// unknown.
std::string to_string(const OffloadMemory& memory);

class Offload {
 public:
  // Throws ValueError if an option is invalid, and c10::Error if the device does not exist.
  explicit Offload(OffloadOptions options = {});
  // Executes a plan. The plan says which saved tensors are offloaded, which calls of
  // ferry::checkpoint recompute (in the order of the calls) and what these keep, and which
  // operators are recomputed (by their position in the forward, on the guard's thread). It also
  // replaces these options: min_bytes, window, window_tensors, prefetch, prefetch_tensors, hold,
  // pinned, copy_streams and reload_pool.
  Offload(const Plan& plan, OffloadOptions options);

  // Never offloads the parameters and buffers of this module, or this tensor: they occupy device
  // memory anyway. They stay exempt if they get another storage later.
  void exempt(const torch::nn::Module& module);
  void exempt(const torch::Tensor& tensor);

  // Returns the counts since construction. ferry::to_string(…) makes one line of them.
  OffloadStatistics statistics() const;
  // Returns the counts of the present or last step, since its guard was made.
  OffloadStatistics step_statistics() const;
  // Returns the memory since construction.
  OffloadMemory memory() const;
  // True if everything offloaded stayed in the memory of this process, as on a CPU without a disk.
  bool saves_nothing() const;
  // Returns the options of the core: those above, or the plan's.
  const CoreOptions& core_options() const;
  // True if nothing is left: no copy, no reference, no event.
  bool empty() const;
  // Returns the number of forwards that did not match the plan and that other_shapes allowed.
  std::int64_t other_forwards() const;

  // Returns the decisions since the last call; none without OffloadOptions::decisions.
  std::vector<Decision> take_decisions();
  // Writes the copies, and the ops that ran under guards, as a trace in Chrome's JSON format for
  // ui.perfetto.dev. An error leaves no partial file. Needs OffloadOptions::trace.
  void write_trace(const std::filesystem::path& path) const;

 private:
  friend class OffloadGuard;
  std::shared_ptr<real::OffloadSession> session_;
};

// Offloads one forward and the backward after it. Packs are counted from 0 for each guard.
//
// With a plan: a saved tensor that does not match throws ferry::PlanMismatch from the op that saves
// it, and so does an op that differs from the first or last op of a span in the plan. A segment
// that saves another number of tensors throws ferry::SegmentMismatch from its checkpoint. If a
// forward saves too little, the next guard throws.
class OffloadGuard {
 public:
  explicit OffloadGuard(const Offload& offload);
  explicit OffloadGuard(OffloadOptions options = {});
  OffloadGuard(const OffloadGuard&) = delete;
  OffloadGuard& operator=(const OffloadGuard&) = delete;
  ~OffloadGuard();

  // Returns the guard's Offload, for exempt(), statistics() and decisions.
  Offload& offload() { return offload_; }

 private:
  class Forward;

  Offload offload_;
  std::unique_ptr<Forward> forward_;
};

// Makes a guard: `auto forward = ferry::run(planned);`
[[nodiscard]] inline OffloadGuard run(const Offload& offload) { return OffloadGuard(offload); }

// While it lives, saved tensors are not offloaded. Use it for regions such as the output head.
class NoOffloadGuard {
 public:
  NoOffloadGuard() = default;

 private:
  NoSavedTensorsHooks none_;
};

// Makes an Offload from a plan file. Throws ValueError, with file and line, if the file is invalid.
Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options = {});

}  // namespace ferry
