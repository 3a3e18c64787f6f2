// A cache of all tables of a program: span tables without and with noise, the table of nested
// spans, and the surveys of the sets of spans that the tables returned. Nothing in it depends on a
// budget or on the allocator, so all searches of a program share it.
//
// A table's number is 2 * seed + kind. Kind 0 has all spans; kind 1 leaves out the spans that keep
// expensive operators (`price`). Seed 0 has no noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "plan/candidates.h"
#include "plan/keep_trace.h"
#include "plan/nest_table.h"
#include "plan/span_table.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

class SpanTables {
 public:
  static constexpr std::size_t kKinds = 2;  // kinds of tables for each seed

  // The program and the hardware must outlive it; the trace need not.
  SpanTables(const Program& program, const Hardware& hardware, const KeepTrace& keep);
  SpanTables(const SpanTables&) = delete;
  SpanTables& operator=(const SpanTables&) = delete;

  const SpanChoices& choices() const { return choices_; }
  std::size_t operators() const { return choices_.operators(); }
  const std::vector<std::string>& names() const { return names_; }  // of the program's operators
  // The fewest slots that something fits in. All tables of a kind agree: noise is on times only.
  std::int32_t least_slots(std::size_t number) const { return least_slots_[number % kKinds]; }

  // Makes the tables that are missing, on all processors.
  void make(const std::set<std::size_t>& numbers);
  const SpanTable& table(std::size_t number);  // made at the first call
  const NestTable& nested();                   // made at the first call

  // Adds the names of the first and the last operator to each span.
  std::vector<PlanSpan> named(std::vector<PlanSpan> spans) const;
  // Surveys the program with each set of spans, on all processors; known sets come from the cache.
  using Cuts = std::vector<std::shared_ptr<const Spanned>>;
  Cuts cuts(const std::vector<std::vector<PlanSpan>>& all);

 private:
  SpanTable made(std::size_t number) const {
    return SpanTable(choices_, number / kKinds, number % kKinds == 0);
  }

  const Program& program_;
  const Hardware& hardware_;
  const SpanChoices choices_;
  std::shared_ptr<const sim::Prepared> prepared_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> least_slots_;    // by kind
  std::map<std::size_t, SpanTable> tables_;  // by number
  std::optional<NestTable> nested_;
  std::map<std::vector<PlanSpan>, std::shared_ptr<const Spanned>> known_;
};

}  // namespace ferry::plan
