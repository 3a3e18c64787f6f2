#include "vgpu/operators/workspaces.h"

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <string_view>
#include <tuple>

#include "vgpu/operators/cublas_workspace.h"

namespace ferry::vgpu {
namespace {

std::atomic<bool> kept = false;

constexpr std::array<std::string_view, 12> kMatmuls = {
    "aten.mm",     "aten.bmm",       "aten.addmm", "aten.baddbmm", "aten._addmm_activation",
    "aten.addmv",  "aten.mv",        "aten.dot",   "aten.vdot",    "aten._int_mm",
    "aten.addbmm", "aten._scaled_mm"};

enum class Library { kCublas, kCublasLt };
using WorkspaceKey = std::tuple<int, cudaStream_t, c10::DeviceIndex, Library>;  // first: the handle

// The cuBLAS handles of all threads.
struct Handles {
  std::mutex mutex;
  std::set<int> free;
  int made = 0;
  std::set<WorkspaceKey> with_workspace;
};
Handles& handles() {  // never destroyed: threads end after main
  static auto* const all = new Handles;
  return *all;
}

// The calling thread's handle. It becomes free when the thread ends.
class Handle {
 public:
  Handle() {
    Handles& all = handles();
    const std::lock_guard lock(all.mutex);
    if (all.free.empty()) {
      number_ = all.made++;
    } else {
      number_ = all.free.extract(all.free.begin()).value();
    }
  }
  ~Handle() {
    Handles& all = handles();
    const std::lock_guard lock(all.mutex);
    all.free.insert(number_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int number() const { return number_; }

 private:
  int number_ = 0;
};

void make(const c10::cuda::CUDAStream& stream, Library library, std::size_t bytes) {
  thread_local const Handle handle;
  const WorkspaceKey key{handle.number(), stream.stream(), stream.device_index(), library};
  {
    Handles& all = handles();
    const std::lock_guard lock(all.mutex);
    if (all.with_workspace.contains(key)) return;
  }
  c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, stream.stream());
  const std::lock_guard lock(handles().mutex);
  handles().with_workspace.insert(key);
}

// Returns whether the call adds a bias of one dimension, for which LibTorch takes cuBLASLt.
bool adds_a_row(const std::string& name, const std::vector<c10::IValue>& arguments) {
  const bool adds = name == "aten.addmm" || name == "aten._addmm_activation";
  return adds && arguments.front().isTensor() && arguments.front().toTensor().dim() == 1;
}

}  // namespace

void keep_workspaces() { kept = true; }
bool keeps_workspaces() { return kept; }

std::vector<std::int64_t> make_workspaces(const std::string& name,
                                          const std::vector<c10::IValue>& arguments,
                                          const c10::cuda::CUDAStream& stream) {
  if (!kept || std::ranges::find(kMatmuls, name) == kMatmuls.end()) return {};
  const bool takes_lt = adds_a_row(name, arguments);
  const auto lt_bytes = [] { return at::cuda::getCUDABlasLtWorkspaceSize(); };
  if (!keeps_cublas_workspaces()) {
    return {static_cast<std::int64_t>(takes_lt ? lt_bytes() : cublas_workspace_bytes())};
  }
  make(stream, Library::kCublas, cublas_workspace_bytes());
  if (takes_lt && !shares_kept_workspaces()) make(stream, Library::kCublasLt, lt_bytes());
  return {};
}

}  // namespace ferry::vgpu
