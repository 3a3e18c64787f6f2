#include "vgpu/run/summary.h"

#include <algorithm>
#include <fstream>

#include "scenarios/units.h"

namespace ferry::vgpu {
namespace {

std::string percent(std::int64_t part, std::int64_t of) {
  return std::to_string((100 * part + of / 2) / of) + " %";
}

using Calls = std::map<std::string, std::int64_t>;

constexpr std::size_t kMostNames = 3;  // kernels have long names

std::string calls_text(const Calls& calls, std::size_t most) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [name, count] : calls) {
    if (named++ == most) return text + " and " + std::to_string(calls.size() - most) + " more";
    text += (text.empty() ? "" : ", ") + name;
    if (count > 1) text += " (" + std::to_string(count) + " times)";
  }
  return text;
}

}  // namespace

std::optional<StepTime> Summary::step() const {
  if (steps.empty()) return std::nullopt;
  std::vector<StepTime> sorted = steps;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StepTime& a, const StepTime& b) { return a.step_ns < b.step_ns; });
  return sorted[sorted.size() / 2];
}

std::optional<Summary> read_summary(const std::filesystem::path& file, const std::string& card) {
  std::ifstream in(file);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(in);
  if (!json.at("used").get<bool>()) return std::nullopt;
  const auto number = [](const nlohmann::json& of, const char* name) {
    return of.at(name).get<std::int64_t>();
  };
  Summary summary{.card = card,
                  .out_of_memory = json.at("out_of_memory").get<std::string>(),
                  .devices = {},
                  .pinned_bytes = number(json, "pinned_bytes"),
                  .run_ns = number(json, "run_ns"),
                  .steps = {},
                  .refused = json.at("refused").get<Calls>(),
                  .stand_ins = json.at("stand_ins").get<Calls>(),
                  .without_cuda_kernel = json.at("without_cuda_kernel").get<Calls>()};
  for (const nlohmann::json& device : json.at("devices")) {
    summary.devices.push_back(
        {number(device, "allocated_bytes"), number(device, "reserved_bytes")});
  }
  for (const nlohmann::json& step : json.at("steps")) {
    summary.steps.push_back({number(step, "step_ns"), number(step, "kernels_ns"),
                             number(step, "waits_ns"), number(step, "host_ns")});
  }
  return summary;
}

std::size_t Summary::fullest() const {
  const auto found = std::max_element(devices.begin(), devices.end(),
                                      [](const DeviceMemory& a, const DeviceMemory& b) {
                                        return a.reserved_bytes < b.reserved_bytes;
                                      });
  return static_cast<std::size_t>(found - devices.begin());
}

std::string to_string(const Summary& summary) {
  const std::size_t fullest = summary.fullest();
  const DeviceMemory& memory = summary.devices.at(fullest);
  std::string where;
  if (summary.devices.size() > 1) {
    where = " on cuda:" + std::to_string(fullest) + ", the fullest of " +
            std::to_string(summary.devices.size());
  }
  std::string text = "simulated " + summary.card + ": at most " +
                     format_bytes(memory.allocated_bytes) + " allocated, " +
                     format_bytes(memory.reserved_bytes) + " reserved" + where + ", " +
                     format_bytes(summary.pinned_bytes) + " page-locked; ";
  if (const auto step = summary.step(); step && step->step_ns > 0) {
    const std::int64_t idle = step->step_ns - step->kernels_ns - step->waits_ns;
    text += "a step " + format_time(step->step_ns) + " (kernels " +
            percent(step->kernels_ns, step->step_ns) + ", waits for other streams " +
            percent(step->waits_ns, step->step_ns) + ", without work " +
            percent(idle, step->step_ns);
    if (200 * step->host_ns >= step->step_ns) {
      text += ", of which for the host's own work " + percent(step->host_ns, step->step_ns);
    }
    text += "), ";
  }
  return text + "the run " + format_time(summary.run_ns);
}

std::string refused_text(const Summary& summary) { return calls_text(summary.refused, kMostNames); }

std::string stand_ins_text(const Summary& summary) {
  return calls_text(summary.stand_ins, summary.stand_ins.size());
}

std::string without_cuda_kernel_text(const Summary& summary) {
  return calls_text(summary.without_cuda_kernel, kMostNames);
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceMemory& device : summary.devices) {
    devices.push_back(
        {{"allocated_bytes", device.allocated_bytes}, {"reserved_bytes", device.reserved_bytes}});
  }
  const DeviceMemory& fullest = summary.devices.at(summary.fullest());
  nlohmann::ordered_json json{{"card", summary.card},
                              {"out_of_memory", summary.out_of_memory},
                              {"allocated_bytes", fullest.allocated_bytes},
                              {"reserved_bytes", fullest.reserved_bytes},
                              {"devices", std::move(devices)},
                              {"pinned_bytes", summary.pinned_bytes},
                              {"run_ns", summary.run_ns},
                              {"refused", summary.refused},
                              {"stand_ins", summary.stand_ins},
                              {"without_cuda_kernel", summary.without_cuda_kernel}};
  nlohmann::ordered_json& steps = json["steps"] = nlohmann::ordered_json::array();
  for (const StepTime& step : summary.steps) {
    steps.push_back({{"step_ns", step.step_ns},
                     {"kernels_ns", step.kernels_ns},
                     {"waits_ns", step.waits_ns},
                     {"host_ns", step.host_ns}});
  }
  return json;
}

}  // namespace ferry::vgpu
