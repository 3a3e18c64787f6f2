// Loops, branches, calls and assertions (operations.h).
//
// A loop runs as long as one of its programs does. Programs that are done keep their values,
// because they are not active. Loops whose bounds are the same in all programs need no mask.
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "vgpu/triton/operations.h"
#include "vgpu/triton/walk.h"

namespace ferry::vgpu::triton {
namespace {

// A kernel that waits for another program never ends here, because programs run one after another.
// Those that may wait use an atomic's result.
constexpr std::int64_t kMostTurnsOfAWait = std::int64_t{1} << 18;
constexpr std::int64_t kMostTurnsOfAWhile = std::int64_t{1} << 26;

template <class T>
Value is_below(Pool& pool, const Value& a, const Value& b) {
  return map<std::uint8_t, T, T>(
      pool, Elem::kI1, [](T x, T y) -> std::uint8_t { return x < y ? 1 : 0; }, a, b);
}

Value is_below(Pool& pool, const Value& a, const Value& b, bool is_unsigned) {
  if (a.elem() == Elem::kI32) {
    return is_unsigned ? is_below<std::uint32_t>(pool, a, b) : is_below<std::int32_t>(pool, a, b);
  }
  return is_unsigned ? is_below<std::uint64_t>(pool, a, b) : is_below<std::int64_t>(pool, a, b);
}

Value plus(Pool& pool, const Value& a, const Value& b) {
  if (a.elem() == Elem::kI32) {
    return map<std::uint32_t, std::uint32_t, std::uint32_t>(pool, a.elem(), std::plus<>(), a, b);
  }
  return map<std::uint64_t, std::uint64_t, std::uint64_t>(pool, a.elem(), std::plus<>(), a, b);
}

std::vector<Value> operands(const Machine& machine, const Op& op, std::size_t from) {
  std::vector<Value> values;
  for (std::size_t i = from; i < op.operands.size(); ++i) values.push_back(machine.operand(op, i));
  return values;
}

void set_results(Machine& machine, const Op& op, std::vector<Value> values) {
  for (std::size_t i = 0; i < op.results.size(); ++i) machine.set(op.results[i], values[i]);
}

void run_for(Machine& machine, const Op& op) {
  Pool& pool = machine.pool();
  const bool is_unsigned = !op.words.empty();
  Value counter = machine.operand(op, 0);
  const Value end = machine.operand(op, 1);
  const Value step = machine.operand(op, 2);
  std::vector<Value> carried = operands(machine, op, 3);
  for (;;) {
    const Value goes_on = is_below(pool, counter, end, is_unsigned);
    std::vector<Value> arguments{counter};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    if (!any(both(pool, machine.active(), goes_on))) break;
    std::vector<Value> made = machine.execute_where(goes_on, op.regions[0], arguments);
    const bool is_uniform = all(goes_on);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      carried[i] = is_uniform ? std::move(made[i]) : merged(pool, goes_on, made[i], carried[i]);
    }
    // A program that is done keeps its counter, so that it cannot wrap around.
    const Value next = plus(pool, counter, step);
    counter = is_uniform ? next : merged(pool, goes_on, next, counter);
  }
  set_results(machine, op, std::move(carried));
}

void run_while(Machine& machine, const Op& op) {
  Pool& pool = machine.pool();
  std::vector<Value> carried = operands(machine, op, 0);
  std::vector<Value> results;
  Value goes_on;  // all programs
  const std::int64_t most = machine.is_sequential() ? kMostTurnsOfAWait : kMostTurnsOfAWhile;
  for (std::int64_t turn = 0;; ++turn) {
    if (turn == most) {
      machine.fail(op, "does not end: programs run one after another, and it waits for another");
    }
    std::vector<Value> decided = machine.execute_where(goes_on, op.regions[0], carried);
    if (decided.empty()) break;
    const Value more = std::move(decided.front());
    decided.erase(decided.begin());
    for (std::size_t i = 0; i < decided.size(); ++i) {
      if (results.size() <= i) {
        results.push_back(decided[i]);
      } else {
        results[i] = goes_on.exists() ? merged(pool, goes_on, decided[i], results[i]) : decided[i];
      }
    }
    goes_on = both(pool, goes_on, more);
    if (!any(both(pool, machine.active(), goes_on))) break;
    std::vector<Value> made = machine.execute_where(goes_on, op.regions[1], results);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      carried[i] = all(goes_on) ? made[i] : merged(pool, goes_on, made[i], carried[i]);
    }
  }
  set_results(machine, op, std::move(results));
}

void run_if(Machine& machine, const Op& op) {
  Pool& pool = machine.pool();
  const Value where = machine.operand(op, 0);
  const std::vector<Value> yes = machine.execute_where(where, op.regions[0], {});
  std::vector<Value> no;
  if (op.regions.size() > 1) {
    no = machine.execute_where(negated(pool, where), op.regions[1], {});
  }
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (yes.empty() || no.empty()) {
      machine.set(op.results[i], yes.empty() ? no[i] : yes[i]);
    } else {
      machine.set(op.results[i], merged(pool, where, yes[i], no[i]));
    }
  }
}

void run_call(Machine& machine, const Op& op) {
  const Function* const function = machine.module().find(op.words[0].substr(1));
  set_results(machine, op, machine.call(*function, operands(machine, op, 0)));
}

void run_assert(Machine& machine, const Op& op) {
  const Value wrong =
      both(machine.pool(), machine.active(), negated(machine.pool(), machine.operand(op, 0)));
  if (any(wrong)) machine.fail(op, "fails an assertion: " + (op.words.empty() ? "" : op.words[0]));
}

void run_nothing(Machine&, const Op&) {}

constexpr std::array<Operation, 9> kOperations = {{{"scf.for", run_for},
                                                   {"scf.while", run_while},
                                                   {"scf.if", run_if},
                                                   {"tt.call", run_call},
                                                   {"tt.assert", run_assert},
                                                   {"llvm.intr.assume", run_nothing},
                                                   {"gpu.barrier", run_nothing},
                                                   {"ttg.barrier", run_nothing},
                                                   {"ttg.local_barrier", run_nothing}}};

}  // namespace

std::span<const Operation> control() { return kOperations; }

}  // namespace ferry::vgpu::triton
