// The tables of a program's spans: without noise and with it, and of nested spans; and the surveys
// of the spans that they gave. None of it depends on a budget or on the allocator, so searches
// share it.
//
// Tables have numbers. With each noise there are two kinds: of all spans, and of those that keep
// nothing for its price.
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
  static constexpr std::size_t kKinds = 2;

  // The program and the hardware must outlive it; of the trace nothing need live on.
  SpanTables(const Program& program, const Hardware& hardware, const KeepTrace& keep);
  SpanTables(const SpanTables&) = delete;
  SpanTables& operator=(const SpanTables&) = delete;

  const SpanChoices& choices() const { return choices_; }
  std::size_t operators() const { return choices_.operators(); }
  const std::vector<std::string>& names() const { return names_; }  // of the operators
  // Of all tables of a kind: noise on the times changes nothing of the memory.
  std::int32_t least_slots(std::size_t number) const { return least_slots_[number % kKinds]; }

  // Makes those of the tables that are missing, on all processors.
  void make(const std::set<std::size_t>& numbers);
  const SpanTable& table(std::size_t number);  // made where it is missing
  const NestTable& nested();                   // the same

  // With the names of the operators that they begin and end with.
  std::vector<PlanSpan> named(std::vector<PlanSpan> spans) const;
  // The program with these spans, surveyed.
  using Cuts = std::vector<std::shared_ptr<const Outlined>>;
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
  std::map<std::size_t, SpanTable> tables_;  // those that were asked for
  std::optional<NestTable> nested_;
  std::map<std::vector<PlanSpan>, std::shared_ptr<const Outlined>> known_;
};

}  // namespace ferry::plan
