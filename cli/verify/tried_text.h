// Blocks and what came of them, as texts that ranks send each other.
#pragma once

#include <string>
#include <string_view>

#include "sim/verify/campaign/ledger.h"

namespace ferry::cli {

std::string to_text(const verify::Block& block);
verify::Block block_from(std::string_view text);

// Of a failure, all but the hazard, which a report finds again.
std::string to_text(const verify::TriedBlock& tried);
verify::TriedBlock tried_from(std::string_view text);

}  // namespace ferry::cli
