#include "vgpu/triton/machine.h"

#include <algorithm>
#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

#include "vgpu/triton/operations.h"
#include "vgpu/triton/small_floats.h"

namespace ferry::vgpu::triton {
namespace {

constexpr std::int64_t kElementsInCache = std::int64_t{1} << 14;

std::int64_t most_elements(const Function& function) {
  std::int64_t most = 1;
  for (const Type& type : function.types) most = std::max(most, type.elements());
  return most;
}

template <class T>
Value one(Pool& pool, Elem elem, T element) {
  Value made(pool, elem, Dims());
  *made.as<T>() = element;
  return made;
}

// A scalar argument of the kernel.
Value argument(Pool& pool, const Type& type, std::uint64_t bits) {
  const auto number = std::bit_cast<double>(bits);
  const auto small = static_cast<float>(number);
  switch (type.elem) {
    case Elem::kI1:
      return one<std::uint8_t>(pool, type.elem, (bits & 1) != 0 ? 1 : 0);
    case Elem::kI8:
      return one(pool, type.elem, static_cast<std::int8_t>(bits));
    case Elem::kI16:
      return one(pool, type.elem, static_cast<std::int16_t>(bits));
    case Elem::kI32:
      return one(pool, type.elem, static_cast<std::int32_t>(bits));
    case Elem::kF16:
      return one(pool, type.elem, rounded<Elem::kF16>(small));
    case Elem::kBF16:
      return one(pool, type.elem, rounded<Elem::kBF16>(small));
    case Elem::kF8E4M3:
      return one(pool, type.elem, rounded<Elem::kF8E4M3>(small));
    case Elem::kF8E5M2:
      return one(pool, type.elem, rounded<Elem::kF8E5M2>(small));
    case Elem::kF32:
      return one(pool, type.elem, small);
    case Elem::kF64:
      return one(pool, type.elem, number);
    default:
      return one(pool, type.elem, static_cast<std::int64_t>(bits));
  }
}

}  // namespace

Machine::Machine(const Kernel& kernel, const Launch& launch, Runs runs)
    : kernel_(kernel),
      launch_(launch),
      runs_(runs),
      memory_(launch.memory),
      function_(kernel.entry),
      values_(kernel.entry->types.size()) {}

void Machine::run() {
  const std::int64_t programs = launch_.grid[0] * launch_.grid[1] * launch_.grid[2];
  std::int64_t chunk = std::max(kElementsInCache / most_elements(*function_), std::int64_t{1});
  if (kernel_.is_sequential && runs_ == Runs::kAll) chunk = 1;
  for (first_program_ = 0; first_program_ < programs; first_program_ += chunk) {
    programs_ = std::min(chunk, programs - first_program_);
    run_chunk();
  }
}

void Machine::run_chunk() {
  active_ = Value();
  set_arguments();
  execute_blocks(function_->body);
}

void Machine::set_arguments() {
  const auto& ids = function_->arguments;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    set(ids[i], argument(pool_, type(ids[i]), launch_.arguments[i]));
  }
}

void Machine::add_flops(std::int64_t each_program) {
  std::int64_t active = programs_;
  if (active_.exists()) {
    const auto* const flags = active_.as<std::uint8_t>();
    active = std::count(flags, flags + active_.elements(), 1) * (programs_ / active_.elements());
  }
  flops_ += active * each_program;
}

void Machine::fail(const Op& op, const std::string& what) const {
  throw std::runtime_error(to_string(kernel_.module.locations[op.location]) + ": kernel " +
                           kernel_.name + " " + what);
}

const Op& Machine::execute(const BasicBlock& block) {
  for (const Op& op : block.ops) {
    if (op.run == nullptr) return op;  // it ends the block
    if (is_slice() && !op.in_slice) continue;
    op.run(*this, op);
    for (const ValueId id : op.dies) values_[id] = Value();
  }
  throw std::logic_error("a block without an end");  // read_kernel looks for it
}

std::vector<Value> Machine::ends_with(const Op& op) const {
  std::vector<Value> values;
  values.reserve(op.operands.size());
  for (const ValueId id : op.operands) values.push_back(values_[id]);
  return values;
}

std::vector<Value> Machine::execute(const Region& region, const std::vector<Value>& arguments) {
  const auto& ids = region.blocks[0].arguments;
  for (std::size_t i = 0; i < ids.size(); ++i) set(ids[i], arguments[i]);
  if (region.blocks.size() > 1) return execute_blocks(region);
  return ends_with(execute(region.blocks[0]));
}

std::vector<Value> Machine::execute_where(const Value& where, const Region& region,
                                          const std::vector<Value>& arguments) {
  Value inner = both(pool_, active_, where);
  if (!any(inner)) return {};
  if (all(inner)) inner = Value();
  const Value outer = std::exchange(active_, std::move(inner));
  std::vector<Value> values = execute(region, arguments);
  active_ = outer;
  return values;
}

// Executes blocks that branch forwards, as `return` in the middle of a kernel makes them. Each
// block runs once, for the programs that came to it.
std::vector<Value> Machine::execute_blocks(const Region& region) {
  const Value outer = active_;
  std::map<std::string, Value> reached;  // which programs come to a block
  std::vector<Value> result;
  for (std::size_t i = 0; i < region.blocks.size(); ++i) {
    const BasicBlock& block = region.blocks[i];
    if (i > 0) {
      const auto found = reached.find(block.label);
      if (found == reached.end()) continue;
      active_ = all(found->second) ? outer : found->second;
    }
    const Op& end = execute(block);
    if (end.successors.empty()) {
      std::vector<Value> values = ends_with(end);
      for (std::size_t k = 0; k < result.size(); ++k) {
        values[k] = active_.exists() ? merged(pool_, active_, values[k], result[k]) : values[k];
      }
      result = std::move(values);
      continue;
    }
    // In a slice, what is behind a branch that depends on data is not executed.
    if (end.successors.size() > 1 && !at(end.operands[0]).exists()) break;
    for (std::size_t way = 0; way < end.successors.size(); ++way) {
      const Successor& next = end.successors[way];
      Value where = active_;
      if (end.successors.size() > 1) {
        const Value& decides = at(end.operands[0]);
        where = both(pool_, active_, way == 0 ? decides : negated(pool_, decides));
      }
      if (!any(where)) continue;
      const auto target =
          std::find_if(region.blocks.begin(), region.blocks.end(),
                       [&](const BasicBlock& each) { return each.label == next.label; });
      for (std::size_t k = 0; k < next.values.size(); ++k) {
        const Value& before = at(target->arguments[k]);
        const bool is_first = !reached.contains(next.label) || !where.exists();
        set(target->arguments[k],
            is_first ? at(next.values[k]) : merged(pool_, where, at(next.values[k]), before));
      }
      const auto found = reached.find(next.label);
      if (found == reached.end()) {
        reached.emplace(next.label, where);
      } else if (!where.exists() || !found->second.exists()) {
        found->second = Value();
      } else {
        found->second =
            negated(pool_, both(pool_, negated(pool_, where), negated(pool_, found->second)));
      }
    }
  }
  active_ = outer;
  return result;
}

std::vector<Value> Machine::call(const Function& function, const std::vector<Value>& arguments) {
  const Function* const caller = std::exchange(function_, &function);
  std::vector<Value> frame(function.types.size());
  std::swap(frame, values_);
  for (std::size_t i = 0; i < arguments.size(); ++i) set(function.arguments[i], arguments[i]);
  std::vector<Value> results = execute_blocks(function.body);
  std::swap(frame, values_);
  function_ = caller;
  return results;
}

}  // namespace ferry::vgpu::triton
