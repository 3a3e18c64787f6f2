// Implements shrink_witness.h: removes delays by ddmin, then shortens those that are left.
#include "sim/explore/shrink_witness.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "sim/choices/ddmin.h"

namespace ferry::explore {
namespace {

class Shrinking {
 public:
  Shrinking(const Explorer& explorer, const Witness& witness, std::size_t runs_max)
      : explorer_(explorer), best_(witness), runs_max_(runs_max) {}

  Shrunk operator()() {
    take_out();
    std::size_t size = 0;
    do {
      size = best_.schedule.size();
      for (std::size_t i = 0; i < size; ++i) shorten(i);
      take_out();  // now other delays may not be needed
    } while (best_.schedule.size() < size);
    return {best_, runs_};
  }

 private:
  // Returns true if the schedule still fails. It then becomes the best one.
  bool try_one(const Schedule& schedule) {
    if (runs_ == runs_max_) return false;
    std::vector<ActionId> order;
    try {
      order = order_of(explorer_.graph(), schedule);
    } catch (const std::invalid_argument&) {
      return false;
    }
    runs_++;
    const auto found = explorer_.difference(order, best_.difference.evidence);
    if (!found) return false;
    best_ = {schedule, *found, explain(explorer_.graph(), order, *found)};
    return true;
  }

  void take_out() {  // try_one() keeps each schedule that still fails
    choices::ddmin(best_.schedule, [this](const Schedule& some) { return try_one(some); });
  }

  void shorten(std::size_t i) {
    const auto with = [&](ActionId late, ActionId until) {
      Schedule schedule = best_.schedule;
      schedule[i] = {late, until};
      return try_one(schedule);
    };
    const Delay delay = best_.schedule[i];
    for (ActionId late = delay.until; late-- > delay.late + 1;) {
      if (with(late, delay.until)) break;
    }
    const ActionId late = best_.schedule[i].late;
    for (ActionId until = late + 1; until < delay.until; ++until) {
      if (with(late, until)) return;
    }
  }

  const Explorer& explorer_;
  Witness best_;
  std::size_t runs_max_;
  std::size_t runs_ = 0;
};

}  // namespace

Shrunk shrink_witness(const Explorer& explorer, const Witness& witness, std::size_t runs_max) {
  return Shrinking(explorer, witness, runs_max)();
}

}  // namespace ferry::explore
