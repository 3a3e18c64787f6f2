#include "cli/cards_plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/cards_table.h"
#include "cli/console/exit_codes.h"
#include "cli/console/messages.h"
#include "cli/console/output.h"
#include "cli/console/progress.h"
#include "cli/console/stop.h"
#include "cli/rows.h"
#include "formats/error.h"

namespace ferry::cli {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    words.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return words;
}

// Parses "a100=1.29,h100=2.5" into thousandths for each card.
std::map<std::string, std::int64_t> prices_of(const std::string& text,
                                              const std::vector<std::string>& cards) {
  constexpr double kMost = 1'000'000;
  std::map<std::string, std::int64_t> prices;
  if (text.empty()) return prices;
  for (const std::string& word : split(text)) {
    const std::size_t equals = word.find('=');
    double price = 0;
    const char* const end = word.data() + word.size();
    const bool is_price = equals != std::string::npos &&
                          std::from_chars(word.data() + equals + 1, end, price).ptr == end &&
                          price >= 0.001 && price <= kMost;
    if (!is_price) {
      throw InputError(
          "--dollars", 0,
          "'" + word + "': expected CARD=PRICE, a price per hour from 0.001 to 1000000");
    }
    const std::string card = word.substr(0, equals);
    if (std::find(cards.begin(), cards.end(), card) == cards.end()) {
      throw InputError("--dollars", 0, "'" + card + "' is none of the cards in --card");
    }
    prices[card] = static_cast<std::int64_t>(price * 1000 + 0.5);
  }
  return prices;
}

void refuse_for_several(const PolicyArguments& arguments) {
  if (!arguments.output.empty()) {
    throw InputError("--output", 0,
                     "expected one --card, and no --dollars: a plan is for one card");
  }
  if (arguments.csv)
    throw InputError("--csv", 0, "expected one --card, and no --dollars; or --json");
}

}  // namespace

void add_dollars_option(CLI::App& command, Dollars& dollars) {
  command
      .add_option("--dollars", dollars,
                  "Print one table of all cards, with the cost of a million tokens; prices are per "
                  "hour, as a100=1.3,h100=2.5 (default: `cost` in the cards' files)")
      ->type_name("PRICES")
      ->expected(0, 1);
}

bool has_several_cards(const PolicyArguments& arguments) {
  return arguments.hardware.find(',') != std::string::npos;
}

int plan_cards(const PolicyArguments& arguments, const Dollars& dollars) {
  refuse_for_several(arguments);
  const std::vector<std::string> names = split(arguments.hardware);
  if (std::find(names.begin(), names.end(), "") != names.end()) {
    throw InputError("--card", 0, "expected a card between two commas");
  }
  for (const std::string& name : names) find_hardware(name);  // before anything is captured
  const std::map<std::string, std::int64_t> prices = prices_of(dollars.value_or(""), names);
  std::vector<PlannedCard> cards;
  ProgressLine progress;
  for (const std::string& name : names) {
    PolicyArguments one = arguments;
    one.hardware = name;
    PlannedCard card{understand(one), {}, 0};
    card.cost_per_hour =
        prices.contains(name) ? prices.at(name) : card.request.hardware.cost_per_hour;
    card.request.plan.expandable_too = !arguments.no_expandable;
    card.request.plan.stop = is_stopped;
    card.request.plan.progress = [&](std::string_view policy, std::size_t done, std::size_t all) {
      progress.show(done, all, fmt::format("{}: {}", name, policy));
    };
    card.result = plan::plan(card.request.program, card.request.hardware, card.request.plan);
    progress.clear();
    if (card.result.stopped) {
      return told_stopped(fmt::format("{} of {} cards", cards.size(), names.size()));
    }
    cards.push_back(std::move(card));
  }
  const bool priced = std::any_of(cards.begin(), cards.end(),
                                  [](const PlannedCard& card) { return card.cost_per_hour > 0; });
  if (dollars && !priced) {
    tell("--dollars: no price is known; expected CARD=PRICE, or `cost` in a card's file");
  }
  if (arguments.json) {
    print_json(cards_json(cards));
  } else {
    print_text(cards_table(cards));
  }
  int code = std::any_of(cards.begin(), cards.end(), fits) ? kOk : kDoesNotFit;
  for (const PlannedCard& card : cards) code = told_faults(card.request, card.result.rows, code);
  return code;
}

}  // namespace ferry::cli
