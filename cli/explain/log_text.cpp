#include "cli/explain/log_text.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "scenarios/units.h"
#include "sim/peak/owners_text.h"

namespace ferry::cli {

using Json = nlohmann::ordered_json;

std::string to_text(const std::string& file, const peak::LogPeak& peak) {
  std::string text = fmt::format("{}: ", file);
  if (peak.devices > 1)
    text += fmt::format("cuda:{}, the fullest of {}, ", peak.device, peak.devices);
  text += fmt::format("at its peak, operation {} of {}: {} allocated\n\n", peak.operation,
                      peak.operations, format_bytes(peak.bytes));
  const std::string functions = peak::functions_text(peak, /*lines_most=*/12);
  if (!functions.empty()) text += functions + "\n";
  text += peak::owners_text(peak, /*lines_most=*/20);
  std::int64_t done_bytes = 0;
  for (const peak::LogOwner& owner : peak.owners) done_bytes += owner.done_bytes;
  if (done_bytes > 0) {
    text += fmt::format("\nnot used again: {} that no operation uses after the peak\n",
                        format_bytes(done_bytes));
  }
  return text;
}

Json to_json(const peak::LogPeak& peak) {
  Json json = {{"schema", 1}, {"kind", "log"}};
  json.update(peak::to_json(peak));
  return json;
}

}  // namespace ferry::cli
