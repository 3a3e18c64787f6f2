#include "cli/cards_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/answer.h"
#include "cli/rows.h"
#include "scenarios/units.h"

namespace ferry::cli {
namespace {

__extension__ typedef __int128 Wide;

// Returns the row to use on the card; null: none ran.
const plan::PolicyRow* use(const PlannedCard& card) { return plan::best_row(card.result); }

struct Trained {
  std::string unit;        // empty: not known
  std::int64_t count = 0;  // in a step
};

// Returns what a step trains, from what the capture says of itself: tokens, or samples of a batch.
Trained trained_in_a_step(const PolicyRequest& request) {
  const std::int64_t batch = said_number(request.program, "batch") * request.microbatches;
  const std::int64_t tokens = said_number(request.program, "tokens");
  if (batch == 0) return {};
  return tokens == 0 ? Trained{"samples", batch} : Trained{"tokens", batch * tokens};
}

// The cost of a million of what a step trains, in ten-thousandths; no value: not known.
std::optional<std::int64_t> cost_of_a_million(const PlannedCard& card) {
  constexpr Wide kHourNs = Wide{3'600'000'000'000};
  const Trained trained = trained_in_a_step(card.request);
  if (card.cost_per_hour == 0 || trained.count == 0 || !fits(card)) return std::nullopt;
  const Wide cost = Wide{card.cost_per_hour} * 10 * use(card)->simulation.step_ns * 1'000'000;
  return static_cast<std::int64_t>(cost / (kHourNs * trained.count));
}

std::string money(std::int64_t ten_thousandths) {
  return fmt::format("{}.{:04}", ten_thousandths / 10'000, ten_thousandths % 10'000);
}

std::int64_t per_second(const PlannedCard& card) {
  const sim::Time step_ns = use(card)->simulation.step_ns;
  const auto count = Wide{trained_in_a_step(card.request).count} * 1'000'000'000;
  return step_ns == 0 ? 0 : static_cast<std::int64_t>(count / step_ns);
}

std::string row_text(const PlannedCard& card, bool priced) {
  const plan::PolicyRow* row = use(card);
  const Hardware& hardware = card.request.hardware;
  std::string text =
      fmt::format("{:<14} {:>10} ", hardware.name, format_bytes(card.request.plan.budget_bytes));
  if (!row) return text + fmt::format("{:<16} nothing ran\n", "-");
  text += fmt::format("{:<16} {:>10} ", fits(card) ? row->policy : "nothing fits",
                      format_bytes(row->least_bytes));
  if (!fits(card)) return text.substr(0, text.size() - 1) + "\n";
  const auto slowdown = plan::slowdown_permille(row->simulation.step_ns, card.result.keep_ns);
  const std::int64_t rate = per_second(card);
  text += fmt::format("{:>10} {:>9} {:>9} {:>10}", format_bytes(row->simulation.host_peak_bytes),
                      format_time(row->simulation.step_ns), thousandths(slowdown),
                      rate > 0 ? std::to_string(rate) : "-");
  const auto cost = cost_of_a_million(card);
  return text + (priced ? fmt::format(" {:>10}", cost ? money(*cost) : "-") : "") + "\n";
}

// Names the fastest card and the cheapest one, if the training fits on any.
std::string sentences(const std::vector<PlannedCard>& cards, const std::string& unit) {
  const PlannedCard* fastest = nullptr;
  const PlannedCard* cheapest = nullptr;
  for (const PlannedCard& card : cards) {
    if (!fits(card)) continue;
    if (!fastest || use(card)->simulation.step_ns < use(*fastest)->simulation.step_ns) {
      fastest = &card;
    }
    const auto cost = cost_of_a_million(card);
    if (cost && (!cheapest || *cost < *cost_of_a_million(*cheapest))) cheapest = &card;
  }
  if (!fastest)
    return "It fits on none of these cards. With one --card Ferry says what would help.";
  std::string text =
      fmt::format("The fastest is {}, {} a step with {}.", fastest->request.hardware.name,
                  format_time(use(*fastest)->simulation.step_ns), use(*fastest)->policy);
  if (cheapest) {
    text += fmt::format(" The cheapest is {}, {} for a million {} with {}.",
                        cheapest->request.hardware.name, money(*cost_of_a_million(*cheapest)), unit,
                        use(*cheapest)->policy);
  }
  return text + " With one --card Ferry says how to train like this.";
}

}  // namespace

bool fits(const PlannedCard& card) {
  const plan::PolicyRow* row = use(card);
  return row && row->is_answer();
}

std::string cards_table(const std::vector<PlannedCard>& cards) {
  const PlannedCard& first = cards.front();
  const std::string unit = trained_in_a_step(first.request).unit;
  const bool priced = std::any_of(cards.begin(), cards.end(),
                                  [](const PlannedCard& card) { return card.cost_per_hour > 0; });
  std::string text = fmt::format(
      "{}\n{}Included: {}; the step is {}.\n{}\n", first.request.program_name,
      captured_line(first.request.program), included(first.request.training),
      step_of(first.request.training, first.request.microbatches), times_line(first.request));
  text += fmt::format("{:<14} {:>10} {:<16} {:>10} {:>10} {:>9} {:>9} {:>10}{}\n", "card", "memory",
                      "use", "needs", "host", "step", "slowdown", unit.empty() ? "" : unit + "/s",
                      priced ? "  $/million" : "");
  for (const PlannedCard& card : cards) text += row_text(card, priced);
  return text + "\n" + sentences(cards, unit) + "\n";
}

nlohmann::ordered_json cards_json(const std::vector<PlannedCard>& cards) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"program", cards.front().request.program_name},
                                 {"cards", nlohmann::ordered_json::array()}};
  for (const PlannedCard& card : cards) {
    const plan::PolicyRow* row = use(card);
    const Trained trained = trained_in_a_step(card.request);
    const auto cost = cost_of_a_million(card);
    nlohmann::ordered_json entry = {
        {"card", card.request.hardware.name},
        {"budget_bytes", card.request.plan.budget_bytes},
        {"fits", fits(card)},
        {"policy", row ? nlohmann::ordered_json(row->policy) : nlohmann::ordered_json()},
        {"alloc_conf", row ? nlohmann::ordered_json(row->alloc_conf) : nlohmann::ordered_json()},
        {"least_bytes", row ? nlohmann::ordered_json(row->least_bytes) : nlohmann::ordered_json()},
        {"host_peak_bytes",
         row ? nlohmann::ordered_json(row->simulation.host_peak_bytes) : nlohmann::ordered_json()},
        {"step_ns",
         row ? nlohmann::ordered_json(row->simulation.step_ns) : nlohmann::ordered_json()},
        {"keep_ns", card.result.keep_ns},
        {"unit",
         trained.unit.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(trained.unit)},
        {"units_in_a_step", trained.count},
        {"cost_of_a_million", nullptr}};
    if (cost) entry["cost_of_a_million"] = static_cast<double>(*cost) / 10'000;
    json["cards"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace ferry::cli
