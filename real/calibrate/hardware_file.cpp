#include "real/calibrate/hardware_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace ferry::real::calibrate {
namespace {

constexpr std::int64_t kRepresentative = std::int64_t{1} << 24;

const CopyTime* find(const Measured& measured, Lane lane, bool both, std::int64_t bytes) {
  for (const CopyTime& copy : measured.copies) {
    if (copy.lane == lane && copy.both == both && copy.bytes == bytes &&
        copy.memory == HostMemory::kPinned) {
      return &copy;
    }
  }
  return nullptr;
}

// Chooses the copy size whose rate stands for a lane.
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

// If nothing ran beside the other lane, uses the rate of one lane alone.
std::int64_t copy_rate(const Measured& measured, Lane lane, bool both) {
  const std::int64_t bytes = representative_bytes(measured);
  const CopyTime* copy = find(measured, lane, both, bytes);
  if (copy == nullptr) copy = find(measured, lane, false, bytes);
  const std::int64_t ns = std::max<std::int64_t>(copy->time.ns - latency_ns(measured), 1);
  return std::max<std::int64_t>(bytes * 1000 / ns, 1);
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
  return text;
}

std::string peak_lines(const Measured& measured, const Hardware& hardware) {
  const std::string how =
      fmt::format("square matrices of {}, {} rounds, the median", measured.matmuls.front().side,
                  measured.matmuls.front().time.rounds);
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
  set(ComputeClass::kFp8, DType::kF8, hardware.flops_per_us_of(DType::kBF16));
  hardware.memory_bytes_per_us =
      std::max<std::int64_t>(measured.triad_bytes * 1000 / measured.triad.ns, 1);
  hardware.kernel_min_ns = measured.kernel.ns;
  hardware.launch_ns = about.device == "cpu" ? 0 : measured.issue.ns;
  Link& link = hardware.link;
  link.h2d_alone = copy_rate(measured, Lane::kHostToDevice, false);
  link.d2h_alone = copy_rate(measured, Lane::kDeviceToHost, false);
  link.h2d_both = std::min(copy_rate(measured, Lane::kHostToDevice, true), link.h2d_alone);
  link.d2h_both = std::min(copy_rate(measured, Lane::kDeviceToHost, true), link.d2h_alone);
  link.latency_ns = latency_ns(measured);
  return hardware;
}

std::string to_toml(const Measured& measured, const About& about) {
  const Hardware hardware = to_hardware(measured, about);
  const bool cpu = about.device == "cpu";
  // TOML escapes strings as JSON does.
  std::string text = "description = " + nlohmann::json(hardware.description).dump() + "\n\n";
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
  return text + peak_lines(measured, hardware) + link_lines(measured, hardware);
}

}  // namespace ferry::real::calibrate
