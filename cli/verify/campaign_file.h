// The file of a campaign (`ferry verify --resume FILE`). It says which programs were tried without
// a failure, and what was counted, so that a campaign continues after it was stopped or killed.
//
//   {"campaign": {"ferry": "0.1.0", "seed": 7, "small": false, ...},
//    "end": 4096, "coverage": {...}}
//
// The file belongs to one campaign of one version of Ferry; the file of another one is rejected
// with an error. A campaign that failed stores the programs before the failure, so it fails again
// at once.
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
  // The file need not exist yet. Throws InputError if it belongs to another campaign or is no
  // campaign's file.
  CampaignFile(std::filesystem::path path, const VerifyArguments& arguments);

  // The programs that were tried before; the campaign continues after them.
  const verify::Settled& settled() const { return settled_; }

  // Writes the file every few seconds; at once if `now`.
  void keep(const verify::Ledger& ledger, bool now);

  // Returns the seed of the campaign, for a command without --seed. Empty if there is no file.
  static std::optional<std::uint64_t> seed_of(const std::filesystem::path& path);

 private:
  const std::filesystem::path path_;
  const std::string campaign_;  // JSON: all that a program of a number depends on
  verify::Settled settled_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace ferry::cli
