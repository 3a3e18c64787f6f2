#include "sim/peak/owners_text.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/peak/bar_table.h"
#include "sim/peak/stack_words.h"

namespace ferry::peak {
namespace {

constexpr std::string_view kBackward = "the backward of ";

// A place of a log: "the backward of", the file with its line, and " in FUNCTION".
struct LogPlace {
  bool backward = false;
  std::string file;      // "train.py:12"
  std::string function;  // " in step"; empty if the log does not say
};

LogPlace place_of(std::string_view text) {
  LogPlace place;
  place.backward = text.starts_with(kBackward);
  if (place.backward) text.remove_prefix(kBackward.size());
  const std::size_t in = text.rfind(" in ");
  place.file = short_path(text.substr(0, in));
  if (in != std::string_view::npos) place.function = text.substr(in);
  return place;
}

std::string words_of(const LogOwner& owner) {
  if (owner.place.empty()) return owner.what.empty() ? "not known" : owner.what;
  const LogPlace place = place_of(owner.place);
  const std::string where =
      (place.backward ? std::string(kBackward) : "") + place.file + place.function;
  return (owner.what.empty() ? "workspace, or never written," : owner.what) + " at " + where;
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

std::string functions_text(const LogPeak& peak, std::size_t lines_most) {
  const BarTable table{.titles = {},
                       .text_title = "function, with its backward",
                       .whole_bytes = peak.bytes,
                       .lines_most = lines_most};
  std::map<std::string, BarLine> functions;
  bool any_place = false;
  for (const LogOwner& owner : peak.owners) {
    const LogPlace place = place_of(owner.place);
    const std::string file = place.file.substr(0, place.file.rfind(':'));
    const std::string name = owner.place.empty() ? "not known" : file + place.function;
    any_place = any_place || !owner.place.empty();
    BarLine& line = functions[name];
    line.bytes += owner.bytes;
    line.parts += owner.blocks;
  }
  if (!any_place) return "";
  std::vector<BarLine> lines;
  for (auto& [name, line] : functions) {
    line.text = name;
    lines.push_back(std::move(line));
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
