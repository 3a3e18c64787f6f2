// A campaign over several ranks: rank 0 hands out blocks of numbers and counts, and its threads try
// some as well. What it says does not depend on how many ranks there are (ledger.h).
#pragma once

#include <cstdint>

#include "cli/ranks/ranks.h"
#include "sim/verify/campaign/campaign.h"

namespace ferry::cli {

// Rank 0's side.
verify::Campaign lead_campaign(Ranks& ranks, const verify::CampaignOptions& options);

// Any other rank's, until it is let go. The seed is rank 0's.
void serve_campaign(Ranks& ranks, verify::CampaignOptions options);

}  // namespace ferry::cli
