// Programs of turns that read and write a few variables: all their orders, one by one, against the
// orders that TurnOrders takes for them.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sim/choices/hash.h"
#include "sim/choices/turn_orders.h"
#include "tests/sim/support/in_range.h"

namespace ferry::choices {
namespace {

// A turn accesses variables, and may need another actor's turn.
struct Planned {
  struct Use {
    std::uint32_t variable;
    bool writes;
  };
  std::vector<Use> uses;
  int needs = -1;  // an earlier turn of the list
};
struct Script {
  std::uint32_t actors = 2;
  std::vector<std::uint32_t> actor;  // by turn; an actor takes its own in order
  std::vector<Planned> turns;
};

// Runs the script, and returns a hash of all that it computed.
std::uint64_t run(const Script& script, Choices& choices) {
  std::vector<std::uint64_t> variables(4);
  std::vector<std::uint64_t> seen(script.actors);
  std::vector<bool> ran(script.turns.size());
  const Choices::Row row(&choices);
  for (std::size_t left = script.turns.size(); left > 0; --left) {
    std::vector<std::uint32_t> ready;
    std::vector<std::size_t> next;
    std::set<std::uint32_t> known;
    for (std::size_t i = 0; i < script.turns.size(); ++i) {
      if (ran[i] || !known.insert(script.actor[i]).second) continue;
      const int needs = script.turns[i].needs;
      if (needs >= 0 && !ran[static_cast<std::size_t>(needs)]) continue;
      ready.push_back(script.actor[i]);
      next.push_back(i);
    }
    const std::size_t turn = next[choices.turn(ChoicePoint::kWorker, ready)];
    const Planned& planned = script.turns[turn];
    if (planned.needs >= 0) {
      choices.touch(Touched::kTask, static_cast<std::uint64_t>(planned.needs), Access::kNeed);
    }
    for (const Planned::Use& use : planned.uses) {
      std::uint64_t& mine = seen[script.actor[turn]];
      std::uint64_t& variable = variables[use.variable];
      mine = combine(mine, variable);
      if (use.writes) variable = combine(mine, turn + 1);
      choices.touch(Touched::kStorage, use.variable, use.writes ? Access::kWrite : Access::kRead);
    }
    choices.touch(Touched::kTask, turn, Access::kMake);
    ran[turn] = true;
  }
  std::uint64_t hash = 0;
  for (const auto* list : {&variables, &seen}) {
    for (const std::uint64_t each : *list) hash = combine(hash, each);
  }
  return hash;
}

Script any_script() {
  Script script;
  script.actors = static_cast<std::uint32_t>(*test::in_range(2, 5));
  const int turns = *test::in_range(1, 8);
  for (int i = 0; i < turns; ++i) {
    script.actor.push_back(
        static_cast<std::uint32_t>(*test::in_range(0, static_cast<int>(script.actors))));
    Planned planned;
    const int uses = *test::in_range(0, 3);
    for (int use = 0; use < uses; ++use) {
      planned.uses.push_back(
          {static_cast<std::uint32_t>(*test::in_range(0, 4)), *test::in_range(0, 2) == 1});
    }
    if (i > 0 && *test::in_range(0, 3) == 0) planned.needs = *test::in_range(0, i);
    script.turns.push_back(planned);
  }
  return script;
}

struct Explored {
  std::map<std::uint64_t, std::uint64_t> outcomes;  // by class
  bool consistent = true;                           // a class has one outcome
  std::uint64_t twice = 0;                          // classes that came again, untold
  std::uint64_t runs = 0;
  std::uint64_t classes = 0;
};

Explored explore(const Script& script, TurnOrders::Which which) {
  Explored found;
  TurnOrders orders(which);
  bool more = true;
  while (more) {
    OrderedChoices choices(orders);
    const std::uint64_t outcome = run(script, choices);
    more = orders.next();
    if (orders.last_repeated()) continue;
    const auto [at, is_new] = found.outcomes.emplace(orders.last_class(), outcome);
    found.consistent &= at->second == outcome;
    found.twice += is_new ? 0 : 1;
  }
  found.runs = orders.runs();
  found.classes = orders.classes();
  return found;
}

TEST(TurnOrdersProp, EachClassOnceAndAllOfThem) {
  EXPECT_TRUE(rc::check("as brute force says", [] {
    const Script script = any_script();
    const Explored all = explore(script, TurnOrders::Which::kAll);
    const Explored found = explore(script, TurnOrders::Which::kClasses);
    RC_ASSERT(all.consistent);
    RC_ASSERT(found.outcomes == all.outcomes);
    RC_ASSERT(found.twice == 0u);
    RC_ASSERT(found.classes == all.outcomes.size());
    RC_ASSERT(found.runs <= all.runs);
    RC_CLASSIFY(found.classes < all.runs, "fewer than all");
    RC_CLASSIFY(found.classes > 1, "several classes");
    RC_CLASSIFY(found.runs > found.classes, "some runs repeated");
  }));
}

}  // namespace
}  // namespace ferry::choices
