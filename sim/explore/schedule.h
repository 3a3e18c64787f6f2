// A schedule: one order in which a recording's actions may run, said as what is late.
//
// The reference is issue order: each action as soon as those issued before it have run. A schedule
// lists delays: `later` does not run before `until`, which was issued after it, has run. Everything
// else, and what depends on a delayed action, follows as early as issue order has it. Every order
// of a graph is such a list, and each list with some delays taken out is a schedule, too: so few
// delays are a small explanation, and shrinking is taking delays out.
//
// Reports write it as "41@52 43@52", each delay as OP@UNTIL, in the numbers of the ops;
// "41r" is the host's part of a copy that the host stages. Issue order is "-".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/choices/choices.h"
#include "sim/explore/op_graph.h"

namespace ferry::explore {

struct Delay {
  ActionId late = 0;
  ActionId until = 0;
  bool operator==(const Delay&) const = default;
};

using Schedule = std::vector<Delay>;

// Returns the order of all actions. Throws std::invalid_argument where the delays contradict the
// graph; it names an action that would have to run before itself.
std::vector<ActionId> order_of(const OpGraph& graph, const Schedule& schedule);
// Returns the schedule of an order of the graph, with at most one delay for each action.
Schedule schedule_of(const std::vector<ActionId>& order);
// An order whose every turn the choices decide (ChoicePoint::kDevice): of each stream and each host
// thread one action is ready at a time (and frees of host memory, which count as the thread's).
std::vector<ActionId> draw_order(const OpGraph& graph, choices::Choices& choices);

std::string to_string(const OpGraph& graph, const Schedule& schedule);
// Reads what that wrote. Throws std::invalid_argument, with what was expected.
Schedule parse_schedule(const OpGraph& graph, std::string_view text);

// Names an action as messages do: by its op's number, as in the text.
std::string name_of(const OpGraph& graph, ActionId action);

}  // namespace ferry::explore
