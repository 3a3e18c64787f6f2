// A piece of hardware, as the machine and the tape ask for it.
#pragma once

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

 private:
  const Hardware& hardware_;
};

// Memory is unlimited. It is one device, with the links that several would have.
inline MachineOptions machine_options(const Hardware& hardware) {
  MachineOptions machine;
  machine.links = {hardware.link.h2d_alone, hardware.link.d2h_alone, hardware.link.h2d_both,
                   hardware.link.d2h_both, hardware.link.latency_ns};
  machine.peer = {hardware.peer.bytes_per_us, hardware.peer.latency_ns};
  machine.port = {hardware.port.up_bytes_per_us, hardware.port.down_bytes_per_us};
  machine.devices_per_port = static_cast<std::uint32_t>(hardware.port.devices);
  machine.launch_ns = hardware.launch_ns;
  machine.clone_bytes_per_us = hardware.memory_bytes_per_us * hardware.memory_percent / 100 / 2;
  machine.host_total_bytes = hardware.host_memory_bytes;
  return machine;
}

}  // namespace ferry::sim
