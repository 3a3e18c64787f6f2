#include "vgpu/run/summary.h"

#include <algorithm>
#include <fstream>

#include "scenarios/units.h"

namespace ferry::vgpu {
namespace {

std::string percent(std::int64_t part, std::int64_t of) {
  return std::to_string((100 * part + of / 2) / of) + " %";
}

}  // namespace

std::optional<StepTime> Summary::step() const {
  if (steps.empty()) return std::nullopt;
  std::vector<StepTime> sorted = steps;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StepTime& a, const StepTime& b) { return a.total_ns < b.total_ns; });
  return sorted[sorted.size() / 2];
}

std::optional<Summary> read_summary(const std::filesystem::path& file, const std::string& card) {
  std::ifstream in(file);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(in);
  if (!json.at("used").get<bool>()) return std::nullopt;
  Summary summary{card, json.at("total_ns").get<std::int64_t>(), {}};
  for (const nlohmann::json& step : json.at("steps")) {
    summary.steps.push_back({step.at("total_ns").get<std::int64_t>(),
                             step.at("kernels_ns").get<std::int64_t>(),
                             step.at("waits_ns").get<std::int64_t>()});
  }
  return summary;
}

std::string to_string(const Summary& summary) {
  std::string text = "simulated time on " + summary.card + ": ";
  if (const auto step = summary.step(); step && step->total_ns > 0) {
    const std::int64_t idle = step->total_ns - step->kernels_ns - step->waits_ns;
    text += "a step " + format_time(step->total_ns) + " (kernels " +
            percent(step->kernels_ns, step->total_ns) + ", waits for other streams " +
            percent(step->waits_ns, step->total_ns) + ", without work " +
            percent(idle, step->total_ns) + "), ";
  }
  return text + "the run " + format_time(summary.total_ns);
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json json{{"card", summary.card}, {"run_ns", summary.total_ns}};
  nlohmann::ordered_json& steps = json["steps"] = nlohmann::ordered_json::array();
  for (const StepTime& step : summary.steps) {
    steps.push_back(
        {{"step_ns", step.total_ns}, {"kernels_ns", step.kernels_ns}, {"waits_ns", step.waits_ns}});
  }
  return json;
}

}  // namespace ferry::vgpu
