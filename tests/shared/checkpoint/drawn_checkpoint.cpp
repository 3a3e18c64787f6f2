#include "tests/shared/checkpoint/drawn_checkpoint.h"

#include <algorithm>
#include <utility>

#include "tests/shared/checkpoint/ops_rig.h"

namespace ferry::test {
namespace {

std::size_t below(choices::Draws& draws, std::size_t end) {
  return static_cast<std::size_t>(draws.in(0, static_cast<int>(end)));
}

Act draw_act(choices::Draws& draws) {
  return {below(draws, OpsRig::kElements.size()), draws.one_in(2)};
}

std::optional<bool> draw_guard(choices::Draws& draws) {
  if (!draws.one_in(3)) return std::nullopt;
  return draws.one_in(2);
}

// In every second call something is otherwise when it runs again.
Acts changed(choices::Draws& draws, Acts acts) {
  const std::size_t at = below(draws, acts.size());
  const auto place = acts.begin() + static_cast<std::ptrdiff_t>(at);
  const bool last = draws.one_in(2);
  switch (draws.in(0, 8)) {
    case 0:
      place->op = below(draws, OpsRig::kElements.size());
      break;
    case 1:
      acts.erase(place);
      break;
    case 2:
      acts.insert(last ? acts.end() : place, draw_act(draws));
      break;
    case 3:
      place->saves ^= true;
      break;
    default:
      break;
  }
  return acts;
}

std::vector<std::string> ops_of(const Acts& acts) {
  std::vector<std::string> ops;
  for (const Act& act : acts) ops.push_back(OpsRig::name_of(act.op));
  return ops;
}

std::string listed(const char* title, const std::vector<std::string>& ops) {
  std::string text = std::string(title) + " (" + std::to_string(ops.size()) + " ops):\n";
  for (const std::string& op : ops) text += "  " + op + "\n";
  return text + "\n";
}

// In debug mode an error says which ops ran, and the first that differs.
void add_logs(const DrawnCheckpoint& call, Recomputed& expected) {
  const std::vector<std::string> forward = ops_of(call.forward);
  const std::vector<std::string>& again = expected.ops;
  expected.facts.push_back("\nERROR: Detected non-determinism");
  expected.facts.push_back(listed("\nOperations of the original forward", forward));
  expected.facts.push_back(listed("\nOperations of the recomputation", again));
  const auto [one, other] =
      std::mismatch(forward.begin(), forward.end(), again.begin(), again.end());
  const std::string number = std::to_string(one - forward.begin());
  if (one == forward.end() && other == again.end()) {
    expected.facts.push_back("The " + number + " ops of forward and of recomputation are the same");
    return;
  }
  const std::string first = one == forward.end() ? "(no op)" : *one;
  const std::string second = other == again.end() ? "(no op)" : *other;
  expected.facts.push_back("First op that differs (number " + number + "):\n  forward:   " + first +
                           "\n  recompute: " + second + "\n");
}

std::string shape_of(std::size_t op) {
  return "shape [" + std::to_string(OpsRig::kElements.at(op)) + "], dtype f32";
}

std::string difference(std::size_t place, std::size_t saved, std::size_t recomputed) {
  return "\ntensor at position " + std::to_string(place) + ":\nsaved metadata: " + shape_of(saved) +
         "\nrecomputed metadata: " + shape_of(recomputed);
}

// How many of the saved tensors a recompute must make.
std::size_t needed(const DrawnCheckpoint& call, std::size_t saved) {
  while (saved > 0 && call.choice(saved - 1) != SavedChoice::kRecompute) --saved;
  return saved;
}

// The errors of a recompute: of which kind, with what it says.
struct Walk {
  std::vector<std::string> differences;
  std::size_t packed = 0;
  bool more = false, caught = false, ended = false;
};

Walk walk(const DrawnCheckpoint& call, const std::vector<std::size_t>& saved,
          Recomputed& expected) {
  const bool compares = call.options.determinism_check == DeterminismCheck::kDefault;
  const std::size_t enough = needed(call, saved.size());
  Walk walk;
  for (const Act& act : call.again) {
    expected.ops.push_back(OpsRig::name_of(act.op));
    expected.random += act.op == OpsRig::kDraws ? 1 : 0;
    if (!act.saves) continue;
    if (walk.caught) return walk;  // it is not to go on
    walk.more = walk.packed == saved.size();
    if (walk.more) return walk;
    const std::size_t place = walk.packed++;
    if (compares && call.is_held(place) && act.op != saved[place]) {
      walk.differences.push_back(difference(place, saved[place], act.op));
    }
    if (!call.stops() || walk.packed < enough) continue;
    walk.caught = call.manner == Manner::kCatchesStop;
    expected.stopped = !walk.caught;
    if (expected.stopped) return walk;
  }
  walk.ended = true;
  return walk;
}

}  // namespace

DrawnCheckpoint draw_checkpoint(choices::Draws& draws) {
  DrawnCheckpoint call;
  for (int more = draws.in(1, 5); more > 0; --more) call.forward.push_back(draw_act(draws));
  call.forward[below(draws, call.forward.size())].saves = true;
  call.again = changed(draws, call.forward);
  call.options.early_stop = draws.one_in(2);
  call.options.debug = draws.one_in(2);
  call.options.preserve_rng_state = draws.one_in(2);
  if (draws.one_in(4)) call.options.determinism_check = DeterminismCheck::kNone;
  for (int more = draws.one_in(3) ? draws.in(1, 5) : 0; more > 0; --more) {
    call.options.choices.push_back(static_cast<SavedChoice>(draws.in(0, 3)));
  }
  call.early_stop = draw_guard(draws);
  call.debug = draw_guard(draws);
  call.where = static_cast<Where>(draws.in(0, 3));
  call.manner = static_cast<Manner>(draws.few(8, 3));
  call.hooked = draws.one_in(2);
  call.pops = draws.one_in(2);
  call.contexts = draws.one_in(3);
  for (const Act& act : call.forward) {
    if (act.saves) call.dropped.push_back(draws.one_in(8));
  }
  return call;
}

std::vector<std::size_t> saved_by(const Acts& acts) {
  std::vector<std::size_t> ops;
  for (const Act& act : acts) {
    if (act.saves) ops.push_back(act.op);
  }
  return ops;
}

Recomputed what_comes_of(const DrawnCheckpoint& call) {
  const std::vector<std::size_t> saved = saved_by(call.forward);
  Recomputed expected;
  Walk walked = walk(call, saved, expected);
  if (walked.ended && call.manner == Manner::kRaises) {
    expected.facts = {kOwnError};
    return expected;
  }
  if (walked.caught) {
    expected.facts = {"caught the exception that ends its recompute early"};
  } else if (walked.more) {
    expected.facts = {"trying to save more tensors during recomputation than during the original"};
  } else if (!expected.stopped && walked.packed != saved.size()) {
    expected.facts = {"A different number of tensors was saved",
                      "saved during forward: " + std::to_string(saved.size()) + "\n",
                      "saved during recomputation: " + std::to_string(walked.packed) + "."};
  } else {
    expected.facts = std::move(walked.differences);
    if (!expected.facts.empty()) expected.facts.push_back("have different metadata");
  }
  if (expected.facts.empty()) return expected;
  if (call.debugs()) {
    add_logs(call, expected);
  } else if (!walked.caught) {
    expected.facts.push_back("Tip: to see a more detailed error message");
  }
  return expected;
}

}  // namespace ferry::test
