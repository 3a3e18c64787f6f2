// `ferry plan --card a100,h100,rtx4090`: plans the training on each card and prints one table: what
// to use there, what it needs, how fast it is, and what a million tokens cost if a price is known.
//
// With --dollars a single card is such a table too. A price comes from --dollars (a100=1.29,…), or
// from `cost` in a card's file; both are per hour.
#pragma once

#include <optional>
#include <string>

#include "cli/policies.h"

namespace CLI {
class App;
}

namespace ferry::cli {

// No value: the option was not typed. Empty: it was typed without prices.
using Dollars = std::optional<std::string>;
void add_dollars_option(CLI::App& command, Dollars& dollars);

// True if --card names several cards.
bool has_several_cards(const PolicyArguments& arguments);

// Returns the exit code: kOk if the training fits on one of the cards. Throws InputError for wrong
// arguments, and for an option that is for one card alone.
int plan_cards(const PolicyArguments& arguments, const Dollars& dollars);

}  // namespace ferry::cli
