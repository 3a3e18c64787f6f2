#include "cli/verify/campaign_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/verify/tried_text.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/file_kind.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kExpected = "expected the file of a campaign that --resume wrote";

// True if the value has the type of the written one. Numbers can have any size.
bool is_like(const Json& given, const Json& written) {
  if (written.is_number()) return given.is_number_unsigned();
  if (!written.is_array()) return given.type() == written.type();
  return given.is_array() && given.size() == written.size() &&
         std::all_of(given.begin(), given.end(),
                     [](const Json& each) { return each.is_number_unsigned(); });
}

// Reads the file. Throws InputError if a part that is used is missing or has the wrong type.
Json read_campaign(const std::filesystem::path& path) {
  const std::string file = path.string(), text = read_file(path);
  refuse_other_kinds(text, file, {FileKind::kCampaign});
  Json json;
  try {
    json = parse_json(text, file, 1);
  } catch (const InputError& error) {
    throw InputError(file, error.line(), std::string(kExpected) + ": this is not complete JSON");
  }
  const auto require = [&](const Json& from, const std::string& key, const Json& written) {
    if (from.is_object() && from.contains(key) && is_like(from[key], written)) return;
    throw InputError(file, 0, std::string(kExpected) + ": \"" + key + "\" is missing or wrong");
  };
  require(json, "campaign", Json::object());
  require(json["campaign"], "seed", 0u);
  require(json, "end", 0u);
  require(json, "coverage", Json::object());
  const Json written = to_json(verify::Coverage());
  for (const auto& [key, value] : written.items()) require(json["coverage"], key, value);
  for (const auto& [feature, count] : json["coverage"]["features"].items()) {
    require(json["coverage"]["features"], feature, 0u);
  }
  return json;
}

// Returns what the file says about its campaign, restricted to the keys of ours.
std::string asked_for(const Json& campaign, const std::string& ours) {
  const Json asked = Json::parse(ours);
  Json theirs = Json::object();
  for (const auto& [key, value] : asked.items()) {
    theirs[key] = campaign.value(key, Json());
  }
  return theirs.dump();
}

std::string campaign_of(const VerifyArguments& arguments) {
  const Json json = {{"ferry", FERRY_VERSION},
                     {"seed", arguments.seed},
                     {"small", arguments.small},
                     {"every_way", arguments.unusual ? Json(*arguments.unusual) : Json()},
                     {"every_order", arguments.orders ? Json(*arguments.orders) : Json()},
                     {"canary", arguments.canary}};
  return json.dump();
}

}  // namespace

CampaignFile::CampaignFile(std::filesystem::path path, const VerifyArguments& arguments)
    : path_(std::move(path)), campaign_(campaign_of(arguments)) {
  require_folder_of(path_);
  if (!std::filesystem::exists(path_)) return;
  const Json json = read_campaign(path_);
  if (const auto theirs = asked_for(json["campaign"], campaign_); theirs != campaign_) {
    throw InputError(path_.string(), 0,
                     "expected the file of this campaign, " + campaign_ + ", and not of " + theirs);
  }
  settled_ = {json.at("end").get<std::uint64_t>(), coverage_from(json.at("coverage"))};
}

void CampaignFile::keep(const verify::Ledger& ledger, bool now) {
  constexpr std::chrono::seconds kPause(5);
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - written_ < kPause) return;
  written_ = time;
  const verify::Settled settled = ledger.settled();
  const Json json = {{"campaign", Json::parse(campaign_)},
                     {"end", settled.end},
                     {"coverage", to_json(settled.coverage)}};
  write_file(path_, json.dump(2) + "\n");
}

std::optional<std::uint64_t> CampaignFile::seed_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_campaign(path)["campaign"]["seed"].get<std::uint64_t>();
}

}  // namespace ferry::cli
