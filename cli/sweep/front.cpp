#include "cli/sweep/front.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/sweep/outcome.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

__extension__ typedef __int128 Wide;

// Cost of a step, for comparing: price per hour in thousandths, times nanoseconds.
Wide cost_of(long long cost, long long step_ns) { return Wide{cost} * step_ns; }

// Formats the cost of a thousand steps as "0.6900"; "-" if it is not known.
std::string cost_text(long long cost, long long step_ns) {
  if (cost == 0) return "-";
  constexpr Wide kPerTenThousandth = Wide{3'600'000'000'000} / 1000 / 10;  // of 1,000 steps' cost
  const auto parts = static_cast<long long>(cost_of(cost, step_ns) / kPerTenThousandth);
  return fmt::format("{}.{:04}", parts / 10'000, parts % 10'000);
}

std::string name_of(const nlohmann::ordered_json& line) {
  std::string name = line["program"].get<std::string>();
  const auto add = [&](const std::string& what) { name += ", " + what; };
  if (line["optimizer"] != "adamw") add(line["optimizer"].get<std::string>());
  if (line["microbatches"] != 1) {
    add(fmt::format("{} micro-batches in {}", line["microbatches"].get<long long>(),
                    line["order"].get<std::string>()));
  }
  return name;
}

}  // namespace

bool Fronts::is_no_worse(const Way& a, const Way& b) {
  if (a.bytes > b.bytes || a.step_ns > b.step_ns) return false;
  const bool priced = a.cost > 0 && b.cost > 0;
  return !priced || cost_of(a.cost, a.step_ns) <= cost_of(b.cost, b.step_ns);
}

void Fronts::add(const nlohmann::ordered_json& line) {
  const std::string name = name_of(line);
  auto front = std::find_if(fronts_.begin(), fronts_.end(),
                            [&name](const Front& each) { return each.name == name; });
  if (front == fronts_.end())
    front = fronts_.insert(front, {.name = name, .ways = {}, .beaten = {}});
  if (line["outcome"] != kFits) return;
  const auto& cost = line["cost_per_hour"];
  const Way way{
      .hardware = line["hardware"].get<std::string>(),
      .budget = line["budget"].get<std::string>(),
      .policy = line["policy"].get<std::string>() + (line["spans"] == false ? " --no-spans" : ""),
      .bytes = line["device_reserved_bytes"].get<long long>(),
      .step_ns = line["step_ns"].get<long long>(),
      .cost = cost.is_null() ? 0 : std::llround(cost.get<double>() * 1000)};
  // If two ways are equal, the first one stays.
  std::vector<Way>& ways = front->ways;
  if (std::any_of(ways.begin(), ways.end(),
                  [&](const Way& each) { return is_no_worse(each, way); })) {
    front->beaten.push_back(way);
    return;
  }
  const auto beaten = std::stable_partition(
      ways.begin(), ways.end(), [&](const Way& each) { return !is_no_worse(way, each); });
  front->beaten.insert(front->beaten.end(), beaten, ways.end());
  ways.erase(beaten, ways.end());
  ways.push_back(way);
}

std::vector<Way> Front::by_time() const {
  std::vector<Way> sorted = ways;
  std::sort(sorted.begin(), sorted.end(), [](const Way& a, const Way& b) {
    return std::tie(a.step_ns, a.bytes) < std::tie(b.step_ns, b.bytes);
  });
  return sorted;
}

std::string Fronts::table() const {
  std::string text;
  for (const Front& front : fronts_) {
    const std::vector<Way> ways = front.by_time();
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", front.name,
                        ways.empty() ? std::string("nothing fits")
                                     : fmt::format("{} of {} that fit", ways.size(), front.fit()));
    if (ways.empty()) continue;
    const bool priced =
        std::any_of(ways.begin(), ways.end(), [](const Way& way) { return way.cost > 0; });
    text += fmt::format("  {:<16} {:>10} {:<22} {:>10} {:>10}{}\n", "hardware", "budget", "policy",
                        "reserved", "step", priced ? "   cost of 1,000 steps" : "");
    for (const Way& way : ways) {
      text += fmt::format("  {:<16} {:>10} {:<22} {:>10} {:>10}", way.hardware, way.budget,
                          way.policy, format_bytes(way.bytes), format_time(way.step_ns));
      text += priced ? fmt::format("{:>22}\n", cost_text(way.cost, way.step_ns)) : "\n";
    }
  }
  return text;
}

}  // namespace ferry::cli
