// The summary that the script's process leaves in a file: how long the run would have taken on the
// card, and its peaks of memory. ferry-run reads it and prints it as text or JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ferry::vgpu {

// All times are in nanoseconds. The default stream had no work in the rest of the step.
struct StepTime {
  std::int64_t step_ns = 0;
  std::int64_t kernels_ns = 0;
  std::int64_t waits_ns = 0;
  std::int64_t host_ns = 0;  // without work, while the host computed or staged copies
};

// The peaks of one device.
struct DeviceMemory {
  std::int64_t allocated_bytes = 0;  // of PyTorch's allocator, since the script last reset its peak
  std::int64_t reserved_bytes = 0;   // taken from the device
};

struct Summary {
  std::string card;
  std::string out_of_memory;          // PyTorch's error, if that ended the script
  std::vector<DeviceMemory> devices;  // at least one
  std::int64_t pinned_bytes = 0;
  std::int64_t run_ns = 0;
  std::vector<StepTime> steps;  // between the ends of the optimizer's steps
  // The calls that the virtual GPU does not support, and how often the script made them.
  std::map<std::string, std::int64_t> refused;
  // The operators that something else computed than on a GPU, and how often the script called them:
  // stand-ins (torch_ferry.virtual), and CPU kernels of operators that have no CUDA kernel.
  std::map<std::string, std::int64_t> stand_ins;
  std::map<std::string, std::int64_t> without_cuda_kernel;

  // The step of median length; nullopt if there are no steps.
  std::optional<StepTime> step() const;
  // The device with the most reserved bytes; the first of them if several are equal.
  std::size_t fullest() const;
};

// Returns nullopt if Python did not come to its end, or CUDA was not used. Throws
// nlohmann::json::exception if the file is no summary.
std::optional<Summary> read_summary(const std::filesystem::path& file, const std::string& card);

// "simulated h100: at most 8.81 GiB allocated, …; a step 27.9 ms (kernels 92 %, …), the run 1.5 s"
std::string to_string(const Summary& summary);
// Returns "cudaHostRegister (2 times), cudaIpcGetMemHandle, cudaIpcOpenEventHandle and 2 more"; ""
// if nothing was rejected.
std::string refused_text(const Summary& summary);
// Returns "my::op (2 times), my::other", with all stand-ins; "" if there are none.
std::string stand_ins_text(const Summary& summary);
// The same for the other operators, with at most three names.
std::string without_cuda_kernel_text(const Summary& summary);
nlohmann::ordered_json to_json(const Summary& summary);

}  // namespace ferry::vgpu
