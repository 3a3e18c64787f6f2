// A campaign over several ranks. Rank 0 hands out blocks of program numbers and counts the results;
// its threads try programs too. The result does not depend on the number of ranks
// (verify/campaign/ledger.h).
#pragma once

#include <functional>

#include "cli/verify/share_out.h"
#include "verify/campaign/campaign.h"

namespace ferry::cli {

// Runs the campaign on rank 0.
verify::Campaign lead_campaign(Ranks& ranks, const verify::CampaignOptions& options);

// The work of every rank. `stop` in the options ends it in the middle of a block.
Crew campaign_crew(const verify::CampaignOptions& options);

}  // namespace ferry::cli
