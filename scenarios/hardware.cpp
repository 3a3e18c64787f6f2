#include "scenarios/hardware.h"

#include "formats/text_file.h"
#include "scenarios/paths.h"
#include "scenarios/toml_fields.h"
#include "scenarios/units.h"

namespace ferry {
namespace {

std::int64_t positive(TomlFields& file, const std::string& key,
                      std::int64_t (*parse)(std::string_view)) {
  const std::int64_t value = file.quantity(key, parse);
  if (value == 0) file.expected(key, "more than 0");
  return value;
}

Link read_link(TomlFields& file) {
  Link link{.h2d_alone = positive(file, "link.h2d", parse_bytes_per_us),
            .d2h_alone = positive(file, "link.d2h", parse_bytes_per_us),
            .h2d_both = positive(file, "link.h2d_both", parse_bytes_per_us),
            .d2h_both = positive(file, "link.d2h_both", parse_bytes_per_us),
            .latency_ns = file.quantity("link.latency", parse_time_ns)};
  if (link.h2d_both > link.h2d_alone) file.expected("link.h2d_both", "at most link.h2d");
  if (link.d2h_both > link.d2h_alone) file.expected("link.d2h_both", "at most link.d2h");
  return link;
}

PeerLink read_peer(TomlFields& file) {
  if (!file.has("peer.rate") && !file.has("peer.latency")) return {};
  return {.bytes_per_us = positive(file, "peer.rate", parse_bytes_per_us),
          .latency_ns = file.quantity("peer.latency", parse_time_ns)};
}

RootPort read_port(TomlFields& file) {
  const bool any = file.has("port.devices") || file.has("port.up") || file.has("port.down");
  if (!any) return {};
  const RootPort port{.devices = file.integer_or("port.devices", 0, 1, 64),
                      .up_bytes_per_us = positive(file, "port.up", parse_bytes_per_us),
                      .down_bytes_per_us = positive(file, "port.down", parse_bytes_per_us)};
  if (port.devices == 0) file.expected("port.devices", "how many share the port");
  return port;
}

}  // namespace

ComputeClass compute_class(DType dtype) {
  switch (dtype) {
    case DType::kF8:
      return ComputeClass::kFp8;
    case DType::kBF16:
    case DType::kF16:
      return ComputeClass::kHalf;
    case DType::kF64:
      return ComputeClass::kFp64;
    default:
      return ComputeClass::kFp32;
  }
}

Hardware parse_hardware(std::string_view text, const std::string& path) {
  TomlFields file(text, path);
  Hardware hardware{.name = std::filesystem::path(path).stem().string(),
                    .description = file.text("description"),
                    .memory_bytes = positive(file, "memory", parse_bytes),
                    .host_memory_bytes = file.quantity("host_memory", parse_bytes),
                    .flops_per_us = {},
                    .memory_bytes_per_us = positive(file, "memory_rate", parse_bytes_per_us),
                    .matmul_percent = file.quantity("efficiency.matmul", parse_percent),
                    .memory_percent = file.quantity("efficiency.memory", parse_percent),
                    .kernel_min_ns = file.quantity("kernel_min", parse_time_ns),
                    .launch_ns = file.quantity("launch", parse_time_ns),
                    .link = read_link(file),
                    .peer = read_peer(file),
                    .port = read_port(file)};
  const auto rate = [&](ComputeClass of) -> std::int64_t& {
    return hardware.flops_per_us[static_cast<std::size_t>(of)];
  };
  rate(ComputeClass::kFp64) = positive(file, "peak.fp64", parse_flops_per_us);
  rate(ComputeClass::kFp32) = positive(file, "peak.fp32", parse_flops_per_us);
  rate(ComputeClass::kHalf) = positive(file, "peak.bf16", parse_flops_per_us);
  rate(ComputeClass::kFp8) = file.has("peak.fp8") ? positive(file, "peak.fp8", parse_flops_per_us)
                                                  : rate(ComputeClass::kHalf);
  file.finish();
  return hardware;
}

Hardware read_hardware(const std::filesystem::path& path) {
  return parse_hardware(read_file(path), path.string());
}

Hardware find_hardware(const std::string& name_or_path) {
  return read_hardware(find_shipped("hardware", "hardware", ".toml", name_or_path));
}

std::vector<Hardware> list_hardware() {
  std::vector<Hardware> all;
  for (const std::string& name : list_shipped("hardware", ".toml")) {
    all.push_back(find_hardware(name));
  }
  return all;
}

}  // namespace ferry
