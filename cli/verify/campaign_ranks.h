// A campaign over several ranks: rank 0 hands out blocks of numbers and counts, and its threads try
// some as well. What it says does not depend on how many ranks there are (ledger.h).
#pragma once

#include <functional>

#include "cli/verify/share_out.h"
#include "verify/campaign/campaign.h"

namespace ferry::cli {

// Rank 0's side.
verify::Campaign lead_campaign(Ranks& ranks, const verify::CampaignOptions& options);

// What any rank does. The options' stop ends it in the middle of a block.
Crew campaign_crew(const verify::CampaignOptions& options);

}  // namespace ferry::cli
