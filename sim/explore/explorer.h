// Finds orders of a recording's actions in which an access sees a wrong value.
//
//   Recording recording;                       // a consumer of the run's operations
//   …
//   Explorer explorer(recording);
//   Confirmation c = explorer.confirm(hazard); // one schedule, made for this hazard
//   explorer.search(choices, 1000);            // random schedules
//   explorer.search_all(100'000);              // all of them
//
// A race that happens-before reports is *confirmed* by a schedule in which the earlier access is
// late: it waits until the later one has run. If one of the two then meets another op's write on
// the reported bytes, and some access sees another value, the report is not a false alarm. A report
// that stays unconfirmed is a fault of the checker (or of this code), unless the bytes that are
// read were never defined.
//
// Not modelled: whether a wrong value matters. A program may not care.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/hazard.h"
#include "sim/choices/choices.h"
#include "sim/explore/op_graph.h"
#include "sim/explore/recording.h"
#include "sim/explore/run_schedule.h"
#include "sim/explore/schedule.h"

namespace ferry::explore {

// A schedule that gives a wrong value, and where it shows.
struct Witness {
  Schedule schedule;
  Difference difference;
  Met met;
};

// The result of an attempt to confirm a reported hazard by a schedule.
struct Confirmation {
  enum class Result : std::uint8_t {
    kConfirmed,
    kUnconfirmed,  // the actions are ordered, or no value tells their order: the report is wrong
    kUndefined,    // the later access reads bytes that nobody wrote in this life
    kNotARace,     // a hazard of another kind
  };
  Result result = Result::kNotARace;
  std::optional<Witness> witness;  // if it is confirmed
};

struct Search {
  std::uint64_t orders = 0;
  bool complete = false;           // all orders were tried
  std::optional<Witness> witness;  // the first; the search ends with it
};

class Explorer {
 public:
  // The arguments are those of OpGraph.
  explicit Explorer(const Recording& recording, bool host_free_waits = false);

  Confirmation confirm(const check::Hazard& hazard) const;
  // Tries so many orders. The choices answer for all of them together. (PctChoices can only answer
  // for one order.)
  Search search(choices::Choices& choices, std::uint64_t orders) const;
  Search search_all(std::uint64_t orders_max) const;

  // Returns what goes wrong in an order, if the evidence is at least as strong as `least`.
  std::optional<Difference> difference(const std::vector<ActionId>& order,
                                       Evidence least = Evidence::kUnread) const;
  std::optional<Witness> witness(const Schedule& schedule) const;

  const OpGraph& graph() const { return graph_; }
  const Recording& recording() const { return graph_.recording(); }

 private:
  bool undefined(ActionId later, Range range) const;

  OpGraph graph_;
  Outcome reference_;
};

// Describes a witness in one sentence: "mm #43 reads 4096 bytes at 0x10: undefined, not what
// `reload` #41 wrote".
std::string to_string(const Explorer& explorer, const Witness& witness);

}  // namespace ferry::explore
