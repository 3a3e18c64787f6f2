#include "cli/verify/table_ranks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "verify/schedulers/registry.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::json;

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json oracle_json(std::optional<verify::Oracle> oracle) {
  return oracle ? Json(static_cast<int>(*oracle)) : Json();
}

std::optional<verify::Oracle> oracle_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return static_cast<verify::Oracle>(json.get<int>());
}

std::optional<std::int64_t> count_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<std::int64_t>();
}

// A piece is the number of a row. Its result is {"row": N, ...}, or {"row": N} if it was stopped.
class Rows final : public Pieces {
 public:
  Rows(std::size_t count, std::function<bool()> stop) : count_(count), stop_(std::move(stop)) {}

  std::optional<std::string> take() override {
    const std::lock_guard lock(mutex_);
    if (next_ == count_ || stop_()) return std::nullopt;
    out_.insert(next_);
    return std::to_string(next_++);
  }
  void give(const std::string& done) override {
    Json json = Json::parse(done);
    const std::lock_guard lock(mutex_);
    const auto row = json.at("row").get<std::size_t>();
    out_.erase(row);
    if (json.size() > 1) ready_.emplace(row, std::move(json));
  }
  bool is_waiting() const override {
    const std::lock_guard lock(mutex_);
    return !out_.empty();
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return ready_.size();
  }
  const std::map<std::size_t, Json>& ready() const { return ready_; }

 private:
  const std::size_t count_;
  const std::function<bool()> stop_;
  mutable std::mutex mutex_;
  std::size_t next_ = 0;
  std::set<std::size_t> out_;
  std::map<std::size_t, Json> ready_;
};

std::map<std::size_t, Json> lead_rows(Ranks& ranks, std::size_t count, const Crew& crew,
                                      std::uint64_t seed, const std::function<bool()>& stop,
                                      const std::function<void(std::size_t rows)>& tick) {
  Rows rows(count, stop);
  lead(ranks, rows, crew, std::to_string(seed), stop, [&] { tick(rows.size()); });
  return rows.ready();
}

}  // namespace

std::vector<verify::MatrixRow> lead_matrix(Ranks& ranks, const verify::MatrixOptions& options,
                                           const std::function<void(std::size_t rows)>& tick) {
  const std::vector<verify::Mutant> mutants = verify::all_mutants();
  std::vector<verify::MatrixRow> rows;
  for (const auto& [number, json] :
       lead_rows(ranks, mutants.size(), matrix_crew(options), options.seed, options.stop, tick)) {
    rows.push_back({.mutant = mutants.at(number),
                    .oracle = oracle_from(json.at("oracle")),
                    .killed_by_own_case = json.at("own").get<bool>(),
                    .test = json.at("test").get<std::string>(),
                    .tests = json.at("tests").get<std::int64_t>(),
                    .counterexample_ops = count_from(json.at("ops")),
                    .replay = json.at("replay").get<std::string>(),
                    .unconfirmed = json.at("unconfirmed").get<bool>()});
  }
  return rows;
}

Crew matrix_crew(const verify::MatrixOptions& options) {
  verify::MatrixOptions one = options;
  one.jobs = 1;
  return {.jobs = options.jobs, .ahead = 0, .work = [one](const std::string& piece) {
            const std::size_t number = std::stoull(piece);
            Json json = {{"row", number}};
            for (const verify::MatrixRow& row :
                 verify::mutation_matrix({verify::all_mutants().at(number)}, one)) {
              json.update({{"oracle", oracle_json(row.oracle)},
                           {"own", row.killed_by_own_case},
                           {"test", row.test},
                           {"tests", row.tests},
                           {"ops", json_of(row.counterexample_ops)},
                           {"replay", row.replay},
                           {"unconfirmed", row.unconfirmed}});
            }
            return json.dump();
          }};
}

std::vector<verify::schedulers::SchedulerRow> lead_schedulers(
    Ranks& ranks, const verify::schedulers::SchedulerTableOptions& options,
    const std::function<void(std::size_t rows)>& tick) {
  const auto& entries = verify::schedulers::schedulers();
  std::vector<verify::schedulers::SchedulerRow> rows;
  for (const auto& [number, json] : lead_rows(ranks, entries.size(), schedulers_crew(options),
                                              options.seed, options.stop, tick)) {
    rows.push_back({.entry = &entries[number],
                    .caught_by = oracle_from(json.at("oracle")),
                    .programs = json.at("programs").get<std::int64_t>(),
                    .counterexample_ops = count_from(json.at("ops")),
                    .replay = json.at("replay").get<std::string>()});
  }
  return rows;
}

Crew schedulers_crew(const verify::schedulers::SchedulerTableOptions& options) {
  verify::schedulers::SchedulerTableOptions one = options;
  one.jobs = 1;
  return {.jobs = options.jobs, .ahead = 0, .work = [one](const std::string& piece) {
            const std::size_t number = std::stoull(piece);
            Json json = {{"row", number}};
            const auto* const entry = &verify::schedulers::schedulers()[number];
            for (const verify::schedulers::SchedulerRow& row :
                 verify::schedulers::scheduler_table({&entry, 1}, one)) {
              json.update({{"oracle", oracle_json(row.caught_by)},
                           {"programs", row.programs},
                           {"ops", json_of(row.counterexample_ops)},
                           {"replay", row.replay}});
            }
            return json.dump();
          }};
}

}  // namespace ferry::cli
