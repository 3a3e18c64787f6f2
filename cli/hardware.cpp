// `ferry hardware [NAME…] [--json | --csv]`: prints the shipped cards, or card files of the user.
#include "scenarios/hardware.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console/output.h"
#include "cli/console/shipped.h"
#include "formats/printable.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

struct HardwareOptions {
  std::vector<std::string> names;
  bool json = false;
  bool csv = false;
};

nlohmann::ordered_json to_json(const Hardware& hardware) {
  return {
      {"name", hardware.name},
      {"description", hardware.description},
      {"memory_bytes", hardware.memory_bytes},
      {"capacity_bytes", hardware.capacity_bytes},
      {"context_bytes", hardware.context_bytes},
      {"host_memory_bytes", hardware.host_memory_bytes},
      {"flops_per_us",
       {{"fp8", hardware.flops_per_us_of(DType::kF8)},
        {"bf16", hardware.flops_per_us_of(DType::kBF16)},
        {"fp32", hardware.flops_per_us_of(DType::kF32)},
        {"fp64", hardware.flops_per_us_of(DType::kF64)}}},
      {"memory_bytes_per_us", hardware.memory_bytes_per_us},
      {"matmul_percent", hardware.matmul_percent},
      {"attention_percent", hardware.attention_percent},
      {"memory_percent", hardware.memory_percent},
      {"kernel_min_ns", hardware.kernel_min_ns},
      {"launch_ns", hardware.launch_ns},
      {"link",
       {{"h2d_bytes_per_us", hardware.link.h2d_alone},
        {"d2h_bytes_per_us", hardware.link.d2h_alone},
        {"h2d_both_bytes_per_us", hardware.link.h2d_both},
        {"d2h_both_bytes_per_us", hardware.link.d2h_both},
        {"latency_ns", hardware.link.latency_ns}}},
      {"peer",
       {{"bytes_per_us", hardware.peer.bytes_per_us}, {"latency_ns", hardware.peer.latency_ns}}},
      {"port",
       {{"devices", hardware.port.devices},
        {"up_bytes_per_us", hardware.port.up_bytes_per_us},
        {"down_bytes_per_us", hardware.port.down_bytes_per_us}}},
      {"compute_capability", hardware.compute_capability}};
}

void print_table(const std::vector<Hardware>& all) {
  std::printf("%-10s %9s %9s %9s %14s %12s %11s %11s  %s\n", "name", "memory", "usable", "host",
              "bf16 peak", "memory rate", "h2d (both)", "d2h (both)", "description");
  const auto link = [](std::int64_t alone, std::int64_t both) {
    const std::string text = format_bytes_per_us(alone);
    return text.substr(0, text.find(' ')) + " (" +
           format_bytes_per_us(both).substr(0, format_bytes_per_us(both).find(' ')) + ")";
  };
  for (const Hardware& each : all) {
    std::printf("%-10s %9s %9s %9s %14s %12s %11s %11s  %s\n", printable(each.name).c_str(),
                format_bytes(each.memory_bytes).c_str(), format_bytes(each.usable_bytes()).c_str(),
                format_bytes(each.host_memory_bytes).c_str(),
                format_flops_per_us(each.flops_per_us_of(DType::kBF16)).c_str(),
                format_bytes_per_us(each.memory_bytes_per_us).c_str(),
                link(each.link.h2d_alone, each.link.h2d_both).c_str(),
                link(each.link.d2h_alone, each.link.d2h_both).c_str(),
                printable(each.description).c_str());
  }
}

void run(const HardwareOptions& options) {
  std::vector<Hardware> all;
  if (options.names.empty()) all = list_hardware(warn_of_unreadable);
  for (const std::string& name : options.names) all.push_back(find_hardware(name));
  if (!options.json && !options.csv) return print_table(all);
  nlohmann::ordered_json json = {
      {"ferry", "hardware"}, {"schema", 1}, {"hardware", nlohmann::ordered_json::array()}};
  for (const Hardware& each : all) json["hardware"].push_back(to_json(each));
  options.csv ? print_csv(json["hardware"]) : print_json(json);
}

}  // namespace

void add_hardware(CLI::App& app, Context& context) {
  const auto options = std::make_shared<HardwareOptions>();
  CLI::App* command = app.add_subcommand("hardware", "List cards: memory, rates, link to the host");
  command->group("Shipped files");
  command->footer(R"(
Examples:
  ferry hardware h100          one card: memory, rates, link to the host
  ferry hardware ./mine.toml   a card of your own
  ferry hardware --json        all cards, every figure)");
  CLI::Option* names = command->add_option("NAME", options->names,
                                           "Shipped names or paths of .toml files (default: all)");
  context.values[names] = shipped_cards;
  command->add_flag("--json", options->json, "Print JSON: every figure, in bytes and ns");
  command->add_flag("--csv", options->csv, "Print the same as comma-separated values")
      ->excludes("--json");
  command->callback([options] { run(*options); });
}

}  // namespace ferry::cli
