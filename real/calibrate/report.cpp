#include "real/calibrate/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "formats/layout.h"
#include "scenarios/units.h"

namespace ferry::real::calibrate {
namespace {

using Json = nlohmann::ordered_json;

Json timing(Json what, const Timing& time) {
  what["ns"] = time.ns;
  what["least_ns"] = time.least_ns;
  what["rounds"] = time.rounds;
  return what;
}

const char* lane_name(Lane lane) { return lane == Lane::kDeviceToHost ? "d2h" : "h2d"; }
const char* memory_name(HostMemory memory) {
  return memory == HostMemory::kPinned ? "pinned" : "pageable";
}

std::string rate(std::int64_t bytes, std::int64_t ns) {
  return format_bytes_per_us(bytes * 1000 / ns);
}

}  // namespace

std::string to_table(const Measured& measured, const About& about) {
  const Hardware hardware = to_hardware(measured, about);
  std::string text = hardware.description + "\n\n";
  const auto row = [&text](const std::string& what, const std::string& value) {
    text += fmt::format("{:<28} {}\n", what, value);
  };
  row("memory", format_bytes_per_us(hardware.memory_bytes_per_us));
  for (const MatmulTime& matmul : measured.matmuls) {
    row(fmt::format("matmul in {}", name(matmul.dtype)),
        format_flops_per_us(hardware.flops_per_us_of(matmul.dtype)));
  }
  row("shortest kernel", format_time(measured.kernel.ns));
  row("issue of an operator", format_time(measured.issue.ns));
  for (const AllocationTime& each : measured.allocations) {
    row(each.what + ", " + format_bytes(each.bytes), format_time(each.time.ns));
  }
  text += fmt::format("\n{:<10} {:>9} {:>12} {:>12} {:>12}\n", "copies", "", "", "alone", "both");
  for (const CopyTime& copy : measured.copies) {
    if (copy.both) continue;
    std::string both = "-";
    for (const CopyTime& other : measured.copies) {
      if (other.both && other.lane == copy.lane && other.bytes == copy.bytes &&
          other.memory == copy.memory) {
        both = rate(other.bytes, other.time.ns);
      }
    }
    text += fmt::format("{:<10} {:>9} {:>12} {:>12} {:>12}\n", memory_name(copy.memory),
                        lane_name(copy.lane), format_bytes(copy.bytes),
                        rate(copy.bytes, copy.time.ns), both);
  }
  return text;
}

std::string to_json(const Measured& measured, const About& about, std::size_t times) {
  const Machine& machine = measured.machine;
  Json json = {{"schema", 1},
               {"device", about.device},
               {"name", machine.name},
               {"driver", machine.driver},
               {"date", about.date},
               {"host_tier", about.host_tier},
               {"memory_bytes", machine.memory_bytes},
               {"host_memory_bytes", machine.host_memory_bytes},
               {"threads", machine.host_threads}};
  json["issue"] = timing(Json::object(), measured.issue);
  json["kernel"] = timing(Json::object(), measured.kernel);
  json["triad"] = timing({{"bytes", measured.triad_bytes}}, measured.triad);
  json["host"] = {{"triad", timing({{"bytes", measured.host.triad_bytes}}, measured.host.triad)},
                  {"matmul", timing({{"dtype", name(measured.host.matmul.dtype)},
                                     {"side", measured.host.matmul.side}},
                                    measured.host.matmul.time)}};
  json["matmuls"] = json["copies"] = json["allocations"] = Json::array();
  for (const MatmulTime& matmul : measured.matmuls) {
    json["matmuls"].push_back(
        timing({{"dtype", name(matmul.dtype)}, {"side", matmul.side}}, matmul.time));
  }
  for (const CopyTime& copy : measured.copies) {
    json["copies"].push_back(timing({{"lane", lane_name(copy.lane)},
                                     {"memory", memory_name(copy.memory)},
                                     {"both", copy.both},
                                     {"bytes", copy.bytes}},
                                    copy.time));
  }
  for (const AllocationTime& each : measured.allocations) {
    json["allocations"].push_back(timing({{"what", each.what}, {"bytes", each.bytes}}, each.time));
  }
  json["kernel_times"] = times;
  return json.dump(2) + "\n";
}

}  // namespace ferry::real::calibrate
