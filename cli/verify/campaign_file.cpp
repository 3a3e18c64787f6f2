#include "cli/verify/campaign_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/verify/tried_text.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/text_file.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kExpected = "expected the file of a campaign, which --resume wrote";

Json read_campaign(const std::filesystem::path& path) {
  Json json = Json::parse(read_file(path), nullptr, false);
  if (!json.is_object() || !json.contains("campaign") || !json["campaign"].is_object() ||
      !json["campaign"].value("seed", Json()).is_number_unsigned()) {
    throw InputError(path.string(), 0, kExpected);
  }
  return json;
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
  if (const std::string theirs = json["campaign"].dump(); theirs != campaign_) {
    throw InputError(path_.string(), 0,
                     "expected the file of this campaign, " + campaign_ + ", and not of " + theirs);
  }
  try {
    settled_ = {json.at("end").get<std::uint64_t>(), coverage_from(json.at("coverage"))};
  } catch (const Json::exception&) {
    throw InputError(path_.string(), 0, kExpected);
  }
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
