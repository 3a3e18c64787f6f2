#include "real/calibrate/hardware_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/matrix_time.h"

namespace ferry::real::calibrate {
namespace {

constexpr std::int64_t kRepresentative = std::int64_t{1} << 24;

const CopyTime* find(const Measured& measured, Lane lane, bool both, std::int64_t bytes,
                     HostMemory memory = HostMemory::kPinned) {
  for (const CopyTime& copy : measured.copies) {
    if (copy.lane == lane && copy.both == both && copy.bytes == bytes && copy.memory == memory) {
      return &copy;
    }
  }
  return nullptr;
}

// Returns the size of copies whose rate stands for a lane.
std::int64_t representative_bytes(const Measured& measured) {
  std::int64_t bytes = 0;
  for (const CopyTime& copy : measured.copies) {
    if (copy.bytes <= kRepresentative) bytes = std::max(bytes, copy.bytes);
  }
  return bytes;
}

std::int64_t latency_ns(const Measured& measured) {
  std::int64_t bytes = measured.copies.front().bytes;
  for (const CopyTime& copy : measured.copies) bytes = std::min(bytes, copy.bytes);
  std::int64_t latency = 0;
  for (const Lane lane : {Lane::kDeviceToHost, Lane::kHostToDevice}) {
    const CopyTime* const copy = find(measured, lane, false, bytes);
    if (copy != nullptr) latency = std::max(latency, copy->time.least_ns);
  }
  return latency;
}

// If nothing ran while the other lane copied, uses the rate of one lane alone.
std::int64_t copy_rate(const Measured& measured, Lane lane, bool both) {
  const std::int64_t bytes = representative_bytes(measured);
  const CopyTime* copy = find(measured, lane, both, bytes);
  if (copy == nullptr) copy = find(measured, lane, false, bytes);
  const std::int64_t ns = std::max<std::int64_t>(copy->time.ns - latency_ns(measured), 1);
  return std::max<std::int64_t>(bytes * 1000 / ns, 1);
}

// Returns the rate of memory that is not pinned. If none was copied, it is the rate of pinned
// memory.
std::int64_t pageable_rate(const Measured& measured, Lane lane) {
  const std::int64_t bytes = representative_bytes(measured);
  const std::int64_t pinned = copy_rate(measured, lane, false);
  const CopyTime* const copy = find(measured, lane, false, bytes, HostMemory::kPageable);
  if (copy == nullptr) return pinned;
  const std::int64_t ns = std::max<std::int64_t>(copy->time.ns - latency_ns(measured), 1);
  return std::clamp<std::int64_t>(bytes * 1000 / ns, 1, pinned);
}

// Returns the rate at which the largest block was pinned; 0 if the host tier is not pinned memory.
std::int64_t pin_rate(const Measured& measured, const About& about) {
  std::int64_t rate = 0;
  if (about.device == "cpu") return rate;
  for (const AllocationTime& each : measured.allocations) {  // sizes ascend
    if (each.what != kFreshHostBlock) continue;
    rate = std::max<std::int64_t>(each.bytes * 1000 / each.time.ns, 1);
  }
  return rate;
}

std::int64_t triad_rate(std::int64_t bytes, const Timing& time) {
  return std::max<std::int64_t>(bytes * 1000 / time.ns, 1);
}

std::int64_t matmul_rate(const MatmulTime& matmul) {
  const std::int64_t flops = 2 * matmul.side * matmul.side * matmul.side;
  return std::max<std::int64_t>(flops * 1000 / matmul.time.ns, 1);
}

std::optional<std::int64_t> matmul_rate_of(const Measured& measured, DType dtype) {
  for (const MatmulTime& matmul : measured.matmuls) {
    if (matmul.dtype == dtype) return matmul_rate(matmul);
  }
  return std::nullopt;
}

// The time of a product on a GPU with known multiprocessors is that of whole tiles in whole waves.
// The measured product had some partial ones, so its rate is below the peak rate, at which all are
// full.
void raise_to_full_waves(const Measured& measured, Hardware& hardware) {
  for (const MatmulTime& matmul : measured.matmuls) {
    const std::int64_t side = matmul.side;
    const WideNs planned = product_ns({1, side, side, side}, matmul.dtype, hardware);
    std::int64_t& peak =
        hardware.flops_per_us[static_cast<std::size_t>(compute_class(matmul.dtype))];
    if (planned > matmul.time.ns) {
      peak = static_cast<std::int64_t>(peak * planned / matmul.time.ns);
    }
  }
}

std::string line(const std::string& key, const std::string& value, const std::string& comment) {
  return fmt::format("{:<33} # {}\n", key + " = " + value, comment);
}

std::string quantity(std::int64_t value, const char* unit) {
  return fmt::format("\"{}{}\"", value, unit);
}

std::string link_lines(const Measured& measured, const Hardware& hardware) {
  const std::string copies =
      fmt::format("copies of {} KiB, {} rounds, the median", representative_bytes(measured) >> 10,
                  measured.copies.front().time.rounds);
  const Link& link = hardware.link;
  std::string text = "\n[link]\n";
  text += line("h2d", quantity(link.h2d_alone, "MB/s"), copies);
  text += line("d2h", quantity(link.d2h_alone, "MB/s"), "the same");
  text +=
      line("h2d_both", quantity(link.h2d_both, "MB/s"), "the same, while the other lane copied");
  text += line("d2h_both", quantity(link.d2h_both, "MB/s"), "the same");
  text += line("latency", quantity(link.latency_ns, "ns"),
               "the least time of the smallest copy, of the slower direction");
  const bool pageable =
      std::any_of(measured.copies.begin(), measured.copies.end(),
                  [](const CopyTime& copy) { return copy.memory == HostMemory::kPageable; });
  if (!pageable) return text;
  text += line("pageable_h2d", quantity(link.pageable_h2d, "MB/s"),
               "the same sizes, of memory that is not pinned");
  return text + line("pageable_d2h", quantity(link.pageable_d2h, "MB/s"), "the same");
}

std::string host_lines(const Measured& measured, const Hardware& hardware) {
  std::string text = "\n[host]\n";
  text += line("memory_rate", quantity(hardware.host.memory_bytes_per_us, "MB/s"),
               fmt::format("on the CPU, {} KiB of fp32", measured.host.triad_bytes >> 10));
  return text + line("fp32", quantity(hardware.host.flops_per_us, "MFLOP/s"),
                     fmt::format("the same, square matrices of {}", measured.host.matmul.side));
}

std::string peak_lines(const Measured& measured, const Hardware& hardware) {
  const std::string how =
      fmt::format("square matrices of {}, {} rounds, the median{}", measured.matmuls.front().side,
                  measured.matmuls.front().time.rounds,
                  hardware.multiprocessors > 0 ? ", as if all its waves had been full" : "");
  const auto rate = [&](DType dtype) {
    return quantity(hardware.flops_per_us_of(dtype), "MFLOP/s");
  };
  std::string text = "\n[peak]\n";
  if (matmul_rate_of(measured, DType::kF8)) {
    text += line("fp8", rate(DType::kF8), how + "; e4m3, the sum in bf16");
  }
  text += line("bf16", rate(DType::kBF16), how);
  text += line("fp32", rate(DType::kF32), how + ", in LibTorch's default precision");
  text += line("fp64", rate(DType::kF64), how);
  text += "\n[efficiency]\n";
  text += line("matmul", "\"100%\"", "the rates above were measured");
  return text + line("memory", "\"100%\"", "the same");
}

}  // namespace

Hardware to_hardware(const Measured& measured, const About& about) {
  Hardware hardware;
  const Machine& machine = measured.machine;
  hardware.description = fmt::format(
      "{}, {}, {} thread{}, host tier: {}, measured {}", machine.name, machine.driver,
      machine.host_threads, machine.host_threads == 1 ? "" : "s", about.host_tier, about.date);
  hardware.memory_bytes = hardware.capacity_bytes = machine.memory_bytes;
  hardware.host_memory_bytes = machine.host_memory_bytes;
  const auto set = [&](ComputeClass of, DType dtype, std::int64_t otherwise) {
    hardware.flops_per_us[static_cast<std::size_t>(of)] =
        matmul_rate_of(measured, dtype).value_or(otherwise);
  };
  set(ComputeClass::kFp64, DType::kF64, 1);
  set(ComputeClass::kFp32, DType::kF32, 1);
  set(ComputeClass::kHalf, DType::kBF16, 1);
  set(ComputeClass::kFp8, DType::kF8, 1);
  hardware.multiprocessors = machine.multiprocessors;
  hardware.compute_capability = machine.compute_capability;
  hardware.memory_bytes_per_us = triad_rate(measured.triad_bytes, measured.triad);
  hardware.host = {
      .memory_bytes_per_us = triad_rate(measured.host.triad_bytes, measured.host.triad),
      .flops_per_us = matmul_rate(measured.host.matmul)};
  hardware.kernel_min_ns = measured.kernel.ns;
  hardware.launch_ns = about.device == "cpu" ? 0 : measured.issue.ns;
  hardware.pin_bytes_per_us = pin_rate(measured, about);
  raise_to_full_waves(measured, hardware);
  if (!matmul_rate_of(measured, DType::kF8)) {
    hardware.flops_per_us[static_cast<std::size_t>(ComputeClass::kFp8)] =
        hardware.flops_per_us_of(DType::kBF16);
  }
  Link& link = hardware.link;
  link.h2d_alone = copy_rate(measured, Lane::kHostToDevice, false);
  link.d2h_alone = copy_rate(measured, Lane::kDeviceToHost, false);
  link.h2d_both = std::min(copy_rate(measured, Lane::kHostToDevice, true), link.h2d_alone);
  link.d2h_both = std::min(copy_rate(measured, Lane::kDeviceToHost, true), link.d2h_alone);
  link.latency_ns = latency_ns(measured);
  link.pageable_h2d = pageable_rate(measured, Lane::kHostToDevice);
  link.pageable_d2h = pageable_rate(measured, Lane::kDeviceToHost);
  return hardware;
}

std::string to_toml(const Measured& measured, const About& about) {
  const Hardware hardware = to_hardware(measured, about);
  const bool cpu = about.device == "cpu";
  // TOML escapes strings as JSON does.
  std::string text = "description = " + nlohmann::json(hardware.description).dump() + "\n\n";
  if (hardware.compute_capability > 0) {
    const std::int64_t capability = hardware.compute_capability;
    text += line("compute_capability", fmt::format("\"{}.{}\"", capability / 10, capability % 10),
                 "what the machine says");
  }
  if (hardware.multiprocessors > 0) {
    text += line("multiprocessors", std::to_string(hardware.multiprocessors), "the same");
  }
  text += line("memory", quantity(hardware.memory_bytes, "B"), "what the machine says");
  text += line("host_memory", quantity(hardware.host_memory_bytes, "B"),
               "what the machine says of the host tier");
  text += line("memory_rate", quantity(hardware.memory_bytes_per_us, "MB/s"),
               fmt::format("a = b + s * c, {} KiB of fp32, {} rounds, the median",
                           measured.triad_bytes >> 10, measured.triad.rounds));
  text += line("kernel_min", quantity(hardware.kernel_min_ns, "ns"),
               cpu ? "an operator on 8 elements, with its dispatch"
                   : "kernels on 8 elements, back to back in a full queue");
  text += line("launch", quantity(hardware.launch_ns, "ns"),
               cpu ? fmt::format("the thread that issues computes; {} ns an operator with autograd",
                                 measured.issue.ns)
                   : "host time of an operator with autograd, without waiting");
  if (hardware.pin_bytes_per_us > 0) {
    text += line("pin_rate", quantity(hardware.pin_bytes_per_us, "MB/s"),
                 "a fresh block of pinned memory, the largest of those measured");
  }
  return text + peak_lines(measured, hardware) + link_lines(measured, hardware) +
         host_lines(measured, hardware);
}

}  // namespace ferry::real::calibrate
