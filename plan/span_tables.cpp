#include "plan/span_tables.h"

#include <utility>
#include <variant>

#include "formats/parallel.h"
#include "formats/spans.h"
#include "plan/span_model.h"

namespace ferry::plan {

SpanTables::SpanTables(const Program& program, const Hardware& hardware, const KeepTrace& keep)
    : program_(program), hardware_(hardware), choices_(span_model(program, keep)) {
  prepared_ = sim::prepare(program, hardware, /*takes_memory=*/false);
  if (operators() == 0) return;
  const std::vector<Statement>& forward = program.codes[*spanned_code(program)].statements;
  for (const OperatorRange& range : operator_ranges(program)) {
    names_.push_back(std::get<Op>(forward[range.op].action).name);
  }
  // Without limits on time for a byte, the two kinds are the same.
  const std::size_t second = choices_.has_prices() ? 1 : 0;
  make({0, second});
  for (const std::size_t number : {std::size_t{0}, second}) {
    least_slots_.push_back(table(number).least_slots());
  }
}

void SpanTables::make(const std::set<std::size_t>& numbers) {
  std::vector<std::size_t> missing;
  for (const std::size_t number : numbers) {
    if (!tables_.contains(number)) missing.push_back(number);
  }
  std::vector<std::optional<SpanTable>> fresh(missing.size());
  in_parallel(missing.size(), [&](std::size_t i) { fresh[i].emplace(made(missing[i])); });
  for (std::size_t i = 0; i < missing.size(); ++i) {
    tables_.try_emplace(missing[i], *std::move(fresh[i]));
  }
}

const SpanTable& SpanTables::table(std::size_t number) {
  const auto known = tables_.find(number);
  if (known != tables_.end()) return known->second;
  return tables_.try_emplace(number, made(number)).first->second;
}

const NestTable& SpanTables::nested() {
  if (!nested_) nested_.emplace(choices_);
  return *nested_;
}

std::vector<PlanSpan> SpanTables::named(std::vector<PlanSpan> spans) const {
  for (PlanSpan& span : spans) {
    span.first_op = names_[span.first];
    span.last_op = names_[span.last];
    span.inner = named(std::move(span.inner));
  }
  return spans;
}

// A survey takes about half the time of a simulation, so surveys are cached.
SpanTables::Cuts SpanTables::cuts(const std::vector<std::vector<PlanSpan>>& all) {
  using Known = std::map<std::vector<PlanSpan>, std::shared_ptr<const Spanned>>::iterator;
  std::vector<Known> known, fresh;
  for (const std::vector<PlanSpan>& spans : all) {
    const auto [here, is_new] = known_.try_emplace(spans);
    known.push_back(here);
    if (is_new) fresh.push_back(here);
  }
  in_parallel(fresh.size(), [&](std::size_t i) {
    Survey found = survey(program_, hardware_, fresh[i]->first, prepared_);
    fresh[i]->second = std::make_shared<const Spanned>(Spanned{std::move(found), fresh[i]->first});
  });
  Cuts found;
  for (const Known& each : known) found.push_back(each->second);
  return found;
}

}  // namespace ferry::plan
