#include "sim/peak/owners_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sim/peak/bar_table.h"

namespace ferry::peak {
namespace {

std::string words_of(const LogOwner& owner) {
  if (owner.place.empty()) return owner.what.empty() ? "not known" : owner.what;
  return (owner.what.empty() ? "workspace, or never written," : owner.what) + " at " + owner.place;
}

}  // namespace

std::string owners_text(const LogPeak& peak, std::size_t lines_most) {
  const BarTable table{
      .titles = {}, .text_title = "made by", .whole_bytes = peak.bytes, .lines_most = lines_most};
  std::vector<BarLine> lines;
  for (const LogOwner& owner : peak.owners) {
    lines.push_back({owner.bytes, owner.blocks, {}, words_of(owner)});
  }
  return to_text(table, std::move(lines));
}

nlohmann::ordered_json to_json(const LogPeak& peak) {
  using Json = nlohmann::ordered_json;
  Json json = {{"device", peak.device},         {"devices", peak.devices},
               {"peak_bytes", peak.bytes},      {"operation", peak.operation},
               {"operations", peak.operations}, {"owners", Json::array()}};
  for (const LogOwner& owner : peak.owners) {
    json["owners"].push_back({{"bytes", owner.bytes},
                              {"blocks", owner.blocks},
                              {"operator", owner.what},
                              {"place", owner.place},
                              {"not_used_again_bytes", owner.done_bytes}});
  }
  return json;
}

}  // namespace ferry::peak
