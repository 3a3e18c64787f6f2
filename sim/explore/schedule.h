// A schedule: one order in which the actions of a recording may run, as a list of delays.
//
// The reference is issue order: each action runs as soon as all that were issued before it have
// run. A delay says that `late` does not run before `until`, which was issued after it. All other
// actions, and those that depend on a delayed one, run as early as issue order allows. Every order
// of a graph is such a list, and each list with some delays taken out is a schedule too. So a few
// delays are a short explanation, and shrinking takes delays out.
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

// Returns the order of all actions. Throws std::invalid_argument if the delays contradict the
// graph; the message names an action that would have to run before itself.
std::vector<ActionId> order_of(const OpGraph& graph, const Schedule& schedule);
// Returns the schedule of an order of the graph, with at most one delay for each action.
Schedule schedule_of(const std::vector<ActionId>& order);
// Returns an order in which the choices decide every turn (ChoicePoint::kDevice). Each stream and
// each host thread has one ready action at a time. A thread may also have ready frees of host
// memory.
std::vector<ActionId> draw_order(const OpGraph& graph, choices::Choices& choices);

std::string to_string(const OpGraph& graph, const Schedule& schedule);
// Reads what to_string() wrote. Throws std::invalid_argument, which says what was expected.
Schedule parse_schedule(const OpGraph& graph, std::string_view text);

// Names an action as messages do: by its op's number, as in the text of a schedule.
std::string name_of(const OpGraph& graph, ActionId action);

}  // namespace ferry::explore
