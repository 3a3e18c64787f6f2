// Comparisons and selection (operations.h).
#include <array>
#include <cstdint>
#include <string>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

template <class T, class F>
Value compared(Machine& machine, const Op& op, F f) {
  return map<std::uint8_t, T, T>(
      machine.pool(), Elem::kI1, [f](T x, T y) -> std::uint8_t { return f(x, y) ? 1 : 0; },
      machine.operand(op, 0), machine.operand(op, 1));
}

// `how` is a predicate of arith.cmpi without its "s" or "u".
template <class T>
Value compared(Machine& machine, const Op& op, const std::string& how) {
  if (how == "eq") return compared<T>(machine, op, [](T x, T y) { return x == y; });
  if (how == "ne") return compared<T>(machine, op, [](T x, T y) { return x != y; });
  if (how == "lt") return compared<T>(machine, op, [](T x, T y) { return x < y; });
  if (how == "le") return compared<T>(machine, op, [](T x, T y) { return x <= y; });
  if (how == "gt") return compared<T>(machine, op, [](T x, T y) { return x > y; });
  if (how == "ge") return compared<T>(machine, op, [](T x, T y) { return x >= y; });
  machine.fail(op, "compares by '" + how + "', which the virtual GPU does not run");
}

void compare_whole(Machine& machine, const Op& op) {
  std::string how = op.words.at(0);
  if (how == "slt") {
    Value made = ramp_below(machine.pool(), machine.operand(op, 0), machine.operand(op, 1));
    if (made.exists()) return machine.set_result(op, std::move(made));
  }
  const bool is_unsigned = how[0] == 'u';
  const bool is_signed = how[0] == 's';
  if (is_unsigned || is_signed) how.erase(0, 1);
  const Elem elem = machine.operand(op, 0).elem();
  if (elem == Elem::kI1 && is_signed) how[0] = how[0] == 'l' ? 'g' : 'l';  // true is -1
  machine.set_result(op, by_whole_number(elem, [&](auto t) {
                       using T = decltype(t);
                       return is_unsigned ? compared<Unsigned<T>>(machine, op, how)
                                          : compared<T>(machine, op, how);
                     }));
}

// A predicate that begins with "u" is also true if one of the two is NaN; C++'s comparisons are
// false then, except !=.
template <class T>
Value compared_floats(Machine& machine, const Op& op, const std::string& how) {
  if (how == "true") return compared<T>(machine, op, [](T, T) { return true; });
  if (how == "false") return compared<T>(machine, op, [](T, T) { return false; });
  if (how == "ord") return compared<T>(machine, op, [](T x, T y) { return x == x && y == y; });
  if (how == "uno") return compared<T>(machine, op, [](T x, T y) { return x != x || y != y; });
  if (how == "one") return compared<T>(machine, op, [](T x, T y) { return x < y || x > y; });
  if (how == "ueq") return compared<T>(machine, op, [](T x, T y) { return !(x < y || x > y); });
  if (how == "ult") return compared<T>(machine, op, [](T x, T y) { return !(x >= y); });
  if (how == "ule") return compared<T>(machine, op, [](T x, T y) { return !(x > y); });
  if (how == "ugt") return compared<T>(machine, op, [](T x, T y) { return !(x <= y); });
  if (how == "uge") return compared<T>(machine, op, [](T x, T y) { return !(x < y); });
  return compared<T>(machine, op, how.substr(1));
}

void compare_floats(Machine& machine, const Op& op) {
  const std::string& how = op.words.at(0);
  machine.set_result(op, machine.operand(op, 0).elem() == Elem::kF64
                             ? compared_floats<double>(machine, op, how)
                             : compared_floats<float>(machine, op, how));
}

void select(Machine& machine, const Op& op) {
  machine.set_result(op, merged(machine.pool(), machine.operand(op, 0), machine.operand(op, 1),
                                machine.operand(op, 2)));
}

constexpr std::array<Operation, 3> kOperations = {
    {{"arith.cmpi", compare_whole}, {"arith.cmpf", compare_floats}, {"arith.select", select}}};

}  // namespace

std::span<const Operation> comparisons() { return kOperations; }

}  // namespace ferry::vgpu::triton
