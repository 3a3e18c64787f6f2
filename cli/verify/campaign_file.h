// The file of a campaign (`ferry verify --resume FILE`): which programs were tried without a
// failure, and what was counted, so that a campaign that was stopped or killed goes on.
//
//   {"campaign": {"ferry": "0.1.0", "seed": 7, "small": false, ...},
//    "end": 4096, "coverage": {...}}
//
// It is of one campaign of one version: another one's is refused. A campaign that failed keeps the
// programs before the failure, so it fails again at once.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/verify/verify.h"
#include "verify/campaign/ledger.h"

namespace ferry::cli {

class CampaignFile {
 public:
  // There may be no such file yet. Throws InputError for one of another campaign, and for any other
  // file.
  CampaignFile(std::filesystem::path path, const VerifyArguments& arguments);

  // What the campaign begins with.
  const verify::Settled& settled() const { return settled_; }

  // Writes it now and then; at once where `now`.
  void keep(const verify::Ledger& ledger, bool now);

  // For a command that says none; none: there is no such file.
  static std::optional<std::uint64_t> seed_of(const std::filesystem::path& path);

 private:
  const std::filesystem::path path_;
  const std::string campaign_;  // JSON: what a program of its number depends on
  verify::Settled settled_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace ferry::cli
