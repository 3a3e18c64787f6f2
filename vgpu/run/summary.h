// How long a run would have taken on the card, and its peaks of memory: what the script's process
// leaves in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ferry::vgpu {

// In nanoseconds. What is neither a kernel's nor a wait's the default stream had no work.
struct StepTime {
  std::int64_t step_ns = 0;
  std::int64_t kernels_ns = 0;
  std::int64_t waits_ns = 0;
  std::int64_t host_ns = 0;  // of that without work: until the host had computed, or copied
};

// Peaks.
struct DeviceMemory {
  std::int64_t allocated_bytes = 0;  // by PyTorch's allocator, since the script last reset its peak
  std::int64_t reserved_bytes = 0;   // of the device, by the runtime
};

struct Summary {
  std::string card;
  std::string out_of_memory;          // PyTorch's error, if that ended the script
  std::vector<DeviceMemory> devices;  // at least one
  std::int64_t pinned_bytes = 0;
  std::int64_t run_ns = 0;
  std::vector<StepTime> steps;  // between the ends of the optimizer's steps
  // What the script called and the virtual GPU does not have, and how often.
  std::map<std::string, std::int64_t> refused;

  // The step of median length.
  std::optional<StepTime> step() const;
  // The device of which most was reserved; of equals, the first.
  std::size_t fullest() const;
};

// None: the script ended before it began, or was ended. Throws nlohmann::json::exception if it is
// no summary.
std::optional<Summary> read_summary(const std::filesystem::path& file, const std::string& card);

// "simulated h100: at most 8.81 GiB allocated, …; a step 27.9 ms (kernels 92 %, …), the run 1.5 s"
std::string to_string(const Summary& summary);
// "cudaHostRegister (2 times), cudaIpcOpenEventHandle and 3 more"; "" of nothing.
std::string refused_text(const Summary& summary);
nlohmann::ordered_json to_json(const Summary& summary);

}  // namespace ferry::vgpu
