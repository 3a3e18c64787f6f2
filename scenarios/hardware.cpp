#include "scenarios/hardware.h"

#include "formats/limits.h"
#include "formats/text_file.h"
#include "scenarios/card_meant.h"
#include "scenarios/paths.h"
#include "scenarios/toml_fields.h"
#include "scenarios/units.h"

namespace ferry {
namespace {

using Parse = std::int64_t (*)(std::string_view);
using Format = std::string (*)(std::int64_t);

std::int64_t at_most(std::int64_t most, TomlFields& file, const std::string& key, Parse parse,
                     Format format) {
  const std::int64_t value = file.quantity(key, parse);
  if (value > most) file.expected(key, "at most " + format(most));
  return value;
}

std::int64_t positive(std::int64_t value, TomlFields& file, const std::string& key) {
  if (value == 0) file.expected(key, "more than 0");
  return value;
}

std::int64_t size(TomlFields& file, const std::string& key) {
  return at_most(limits::kBytes, file, key, parse_bytes, format_bytes);
}
std::int64_t time(TomlFields& file, const std::string& key) {
  return at_most(limits::kTimeNs, file, key, parse_time_ns, format_time);
}
std::int64_t rate(TomlFields& file, const std::string& key) {
  const std::int64_t most = limits::kBytesPerUs;
  return positive(at_most(most, file, key, parse_bytes_per_us, format_bytes_per_us), file, key);
}
std::int64_t peak(TomlFields& file, const std::string& key) {
  const std::int64_t most = limits::kFlopsPerUs;
  return positive(at_most(most, file, key, parse_flops_per_us, format_flops_per_us), file, key);
}

Link read_link(TomlFields& file) {
  Link link{.h2d_alone = rate(file, "link.h2d"),
            .d2h_alone = rate(file, "link.d2h"),
            .h2d_both = rate(file, "link.h2d_both"),
            .d2h_both = rate(file, "link.d2h_both"),
            .latency_ns = time(file, "link.latency")};
  const auto or_pinned = [&](const std::string& key, std::int64_t pinned) {
    const std::int64_t pageable = file.has(key) ? rate(file, key) : pinned;
    if (pageable > pinned) file.expected(key, "at most the rate of pinned memory");
    return pageable;
  };
  link.pageable_h2d = or_pinned("link.pageable_h2d", link.h2d_alone);
  link.pageable_d2h = or_pinned("link.pageable_d2h", link.d2h_alone);
  if (link.h2d_both > link.h2d_alone) file.expected("link.h2d_both", "at most link.h2d");
  if (link.d2h_both > link.d2h_alone) file.expected("link.d2h_both", "at most link.d2h");
  return link;
}

PeerLink read_peer(TomlFields& file) {
  if (!file.has("peer.rate") && !file.has("peer.latency")) return {};
  return {.bytes_per_us = rate(file, "peer.rate"), .latency_ns = time(file, "peer.latency")};
}

// Reads "8.9" as 89.
std::int64_t read_compute_capability(TomlFields& file) {
  const std::string key = "compute_capability";
  if (!file.has(key)) return 0;
  const std::string text = file.text(key);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t point = text.find('.');
  const bool right = (point == 1 || point == 2) && text.size() == point + 2 && digit(text[0]) &&
                     digit(text[point - 1]) && digit(text.back());
  if (!right) file.expected(key, "a compute capability of CUDA, such as \"9.0\"");
  return 10 * std::stoll(text.substr(0, point)) + (text.back() - '0');
}

void read_capacity(TomlFields& file, Hardware& hardware) {
  hardware.capacity_bytes = hardware.memory_bytes;
  if (file.has("capacity")) hardware.capacity_bytes = size(file, "capacity");
  if (hardware.capacity_bytes > hardware.memory_bytes) file.expected("capacity", "at most memory");
  if (file.has("context")) hardware.context_bytes = size(file, "context");
  if (hardware.context_bytes >= hardware.capacity_bytes) {
    file.expected("context", "less than capacity, or than memory without it");
  }
}

// Reads the L2 cache. A file has both keys or neither.
void read_l2(TomlFields& file, Hardware& hardware) {
  if (!file.has("l2") && !file.has("l2_rate")) return;
  hardware.l2_bytes = positive(size(file, "l2"), file, "l2");
  hardware.l2_bytes_per_us = rate(file, "l2_rate");
}

std::int64_t read_cost(TomlFields& file) {
  constexpr std::int64_t kMost = 1'000'000'000;  // a step's cost is its time times this
  if (!file.has("cost")) return 0;
  const std::int64_t cost = positive(file.quantity("cost", parse_cost), file, "cost");
  if (cost > kMost) file.expected("cost", "at most 1000000/h");
  return cost;
}

std::int64_t share_or(TomlFields& file, const std::string& key, const std::string& otherwise) {
  return file.quantity(file.has(key) ? key : otherwise, parse_percent);
}

RootPort read_port(TomlFields& file) {
  const bool any = file.has("port.devices") || file.has("port.up") || file.has("port.down");
  if (!any) return {};
  const RootPort port{.devices = file.integer_or("port.devices", 0, 1, 64),
                      .up_bytes_per_us = rate(file, "port.up"),
                      .down_bytes_per_us = rate(file, "port.down")};
  if (port.devices == 0) file.expected("port.devices", "the number of GPUs that share the port");
  return port;
}

HostRates read_host(TomlFields& file) {
  if (!file.has("host.memory_rate") && !file.has("host.fp32")) return {};
  return {.memory_bytes_per_us = rate(file, "host.memory_rate"),
          .flops_per_us = peak(file, "host.fp32")};
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
  file.require({"description", "memory", "host_memory", "memory_rate", "kernel_min", "launch",
                "peak.bf16", "peak.fp32", "peak.fp64", "efficiency.matmul", "efficiency.memory",
                "link.h2d", "link.d2h", "link.h2d_both", "link.d2h_both", "link.latency"});
  Hardware hardware{
      .name = std::filesystem::path(path).stem().string(),
      .description = file.text("description"),
      .compute_capability = read_compute_capability(file),
      .multiprocessors = file.integer_or("multiprocessors", 0, 1, 1024),
      .memory_bytes = positive(size(file, "memory"), file, "memory"),
      .capacity_bytes = 0,
      .context_bytes = 0,
      .host_memory_bytes = size(file, "host_memory"),
      .flops_per_us = {},
      .memory_bytes_per_us = rate(file, "memory_rate"),
      .matmul_percent = file.quantity("efficiency.matmul", parse_percent),
      .attention_percent = share_or(file, "efficiency.attention", "efficiency.matmul"),
      .memory_percent = file.quantity("efficiency.memory", parse_percent),
      .l2_bytes = 0,
      .l2_bytes_per_us = 0,
      .kernel_min_ns = time(file, "kernel_min"),
      .launch_ns = time(file, "launch"),
      .pin_bytes_per_us = file.has("pin_rate") ? rate(file, "pin_rate") : 0,
      .link = read_link(file),
      .peer = read_peer(file),
      .port = read_port(file),
      .host = read_host(file),
      .cost_per_hour = read_cost(file)};
  read_capacity(file, hardware);
  read_l2(file, hardware);
  const auto peak_of = [&](ComputeClass of) -> std::int64_t& {
    return hardware.flops_per_us[static_cast<std::size_t>(of)];
  };
  peak_of(ComputeClass::kFp64) = peak(file, "peak.fp64");
  peak_of(ComputeClass::kFp32) = peak(file, "peak.fp32");
  peak_of(ComputeClass::kHalf) = peak(file, "peak.bf16");
  peak_of(ComputeClass::kFp8) =
      file.has("peak.fp8") ? peak(file, "peak.fp8") : peak_of(ComputeClass::kHalf);
  file.finish();
  return hardware;
}

Hardware read_hardware(const std::filesystem::path& path) {
  return parse_hardware(read_file(path), path.string());
}

Hardware find_hardware(const std::string& name_or_path) {
  std::filesystem::path path;
  try {
    path = find_shipped("hardware", "hardware", ".toml", name_or_path);
  } catch (const InputError&) {
    std::vector<CardName> cards;
    for (const Hardware& card : list_hardware([](const InputError&) {})) {
      cards.push_back({card.name, card.description});
    }
    const std::string meant = card_meant(name_or_path, cards);
    if (meant.empty()) throw;
    throw InputError(name_or_path, 0,
                     "expected a shipped card or the path of a card's file; " + meant);
  }
  return read_hardware(path);
}

std::vector<Hardware> list_hardware(const Unreadable& unreadable) {
  std::vector<Hardware> all;
  for (const std::string& name : list_shipped("hardware", ".toml")) {
    try {
      all.push_back(find_hardware(name));
    } catch (const InputError& error) {
      unreadable(error);
    }
  }
  return all;
}

}  // namespace ferry
