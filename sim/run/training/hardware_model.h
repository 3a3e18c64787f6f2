// A card (scenarios/hardware.h) as the machine and the tape need it: the times of kernels, the
// memory that they allocate, and the options of the machine. sim/gpu and sim/program know only
// these interfaces, and no card file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "scenarios/cuda_memory.h"
#include "scenarios/hardware.h"
#include "scenarios/roofline.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"

namespace ferry::sim {

class Roofline final : public KernelTimes {
 public:
  // The hardware must outlive it.
  explicit Roofline(const Hardware& hardware) : hardware_(hardware) {}
  Time op_ns(const Op& op, DType computes_in) const override {
    return kernel_ns(op, computes_in, hardware_);
  }
  Time op_memory_ns(const Op& op) const override { return moving_ns(op, hardware_); }

 private:
  const Hardware& hardware_;
};

// The memory that cuBLAS and CUDA's kernels allocate on a card whose compute capability is known.
class CudaMemory final : public KernelMemory {
 public:
  // `workspace_bytes`: the size in CUBLAS_WORKSPACE_CONFIG; none: the card's default. If workspaces
  // are not kept, each call takes that of the library that it calls.
  CudaMemory(const Hardware& hardware, std::optional<std::int64_t> workspace_bytes,
             bool keeps_workspaces)
      : is_cuda_(hardware.compute_capability > 0),
        workspaces_(workspaces_of(hardware, workspace_bytes)),
        keeps_workspaces_(keeps_workspaces),
        card_(multiprocessors_of(hardware)) {}
  bool is_asked(std::string_view op) const override { return is_cuda_ && takes_cuda_memory(op); }
  bool makes_last_first(std::string_view op) const override {
    return is_cuda_ && makes_last_result_first(op);
  }
  std::vector<std::int64_t> workspaces(std::string_view op, Layouts inputs) const override {
    if (!keeps_workspaces_) return {};
    const auto needed = libraries_of(op, inputs);
    std::vector<std::int64_t> bytes(workspaces_.begin(), workspaces_.end());
    for (std::size_t i = 0; i < needed.size(); ++i) bytes[i] = needed[i] ? bytes[i] : 0;
    return bytes;
  }
  std::vector<std::int64_t> temporaries(std::string_view op, Layouts inputs,
                                        Layouts outputs) const override {
    std::vector<std::int64_t> steps = temporaries_of(op, inputs, outputs, card_);
    if (keeps_workspaces_) return steps;
    const auto needed = libraries_of(op, inputs);
    const auto bytes_of = [&](WorkspaceLibrary library) {
      const auto number = static_cast<std::size_t>(library);
      return needed[number] ? workspaces_[number] : 0;
    };
    const std::int64_t lt = bytes_of(WorkspaceLibrary::kCublasLt);
    const std::int64_t bytes = lt > 0 ? lt : bytes_of(WorkspaceLibrary::kCublas);
    if (bytes > 0) steps.push_back(bytes);
    return steps;
  }

 private:
  const bool is_cuda_;
  const WorkspaceBytes workspaces_;
  const bool keeps_workspaces_;
  const Multiprocessors card_;
};

// Medians of an H100 with 20 GiB in use, driver 580.159 (tests/real/gpu/RESULTS.md), used for every
// card.
inline constexpr DriverTimes kDriverTimes{.malloc_ns = 55'000,
                                          .malloc_mib_ns = 140,
                                          .free_ns = 50'000,
                                          .free_mib_ns = 510,
                                          .map_ns = 42'000,
                                          .unmap_ns = 40'000};

// Returns the options of one device with unlimited memory, and with the links that several would
// have.
inline MachineOptions machine_options(const Hardware& hardware) {
  MachineOptions machine;
  machine.links = {hardware.link.h2d_alone, hardware.link.d2h_alone, hardware.link.h2d_both,
                   hardware.link.d2h_both, hardware.link.latency_ns};
  machine.peer = {hardware.peer.bytes_per_us, hardware.peer.latency_ns};
  machine.port = {hardware.port.up_bytes_per_us, hardware.port.down_bytes_per_us};
  machine.devices_per_port = static_cast<std::uint32_t>(hardware.port.devices);
  machine.launch_ns = hardware.launch_ns;
  machine.pageable_h2d = hardware.link.pageable_h2d;
  machine.pageable_d2h = hardware.link.pageable_d2h;
  machine.driver = kDriverTimes;
  machine.memory_bytes_per_us = hardware.memory_bytes_per_us * hardware.memory_percent / 100;
  machine.clone_bytes_per_us = machine.memory_bytes_per_us / 2;
  machine.host_total_bytes = hardware.host_memory_bytes;
  return machine;
}

}  // namespace ferry::sim
