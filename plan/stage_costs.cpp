#include "plan/stage_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <variant>

#include "formats/layout.h"
#include "formats/microbatches.h"
#include "formats/statements.h"
#include "shared/pipeline/balance.h"
#include "sim/run/training/hardware_model.h"
#include "sim/run/training/run_parts.h"

namespace ferry::plan {

namespace {

CodeId forward_of(const Program& program) {
  const std::optional<MainStep> step = main_step(program);
  if (!step) throw std::invalid_argument("expected a main code of one call and one backward");
  return step->call.code;
}

// Counts the storages that statements save, as autograd would save them.
class SavedStorages {
 public:
  explicit SavedStorages(const Program& program) : program_(program) {}

  struct Storage {
    std::size_t number = 0;
    std::int64_t bytes = 0;
  };
  using Frame = std::map<Slot, Storage>;

  // Returns the bytes of storages that statements [begin, end) save and that were not saved before.
  // Storages that a call makes are counted at the call.
  std::int64_t save(const Code& code, std::size_t begin, std::size_t end, Frame& frame) {
    std::int64_t bytes = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const Action& action = code.statements[i].action;
      if (const auto* op = std::get_if<Op>(&action)) {
        for (std::size_t k = 0; k < op->out.size(); ++k) {
          frame[op->out[k]] = {next_++, hull(program_.types[op->types[k]]).end_bytes};
        }
      } else if (const auto* view = std::get_if<View>(&action)) {
        if (const auto base = frame.find(view->of); base != frame.end()) {
          frame[view->out] = base->second;
        }
      } else if (const auto* make = std::get_if<MakeNode>(&action)) {
        bytes += save(make->saved, frame);
      } else if (const auto* saves = std::get_if<Save>(&action)) {
        bytes += save(saves->slots, frame);
      } else if (const auto* call = std::get_if<Call>(&action)) {
        bytes += run(*call, frame);
      }
    }
    return bytes;
  }

 private:
  std::int64_t save(const std::vector<Slot>& slots, const Frame& frame) {
    std::int64_t bytes = 0;
    for (const Slot slot : slots) {
      const auto found = frame.find(slot);  // not found: a global, or only a graph edge
      if (found != frame.end() && saved_.insert(found->second.number).second) {
        bytes += found->second.bytes;
      }
    }
    return bytes;
  }
  std::int64_t run(const Call& call, Frame& frame) {
    const Code& code = program_.codes[call.code];
    Frame inner;
    for (std::size_t i = 0; i < call.in.size() && i < code.arguments.size(); ++i) {
      if (const auto found = frame.find(call.in[i]); found != frame.end()) {
        inner[code.arguments[i]] = found->second;
      }
    }
    const bool again = call.recompute != Recompute::kNone;
    const std::set<std::size_t> before = saved_;
    std::int64_t bytes = save(code, 0, code.statements.size(), inner);
    if (again) {
      saved_ = before;
      bytes = save(call.in, frame);
    }
    for (std::size_t i = 0; i < call.out.size() && i < code.results.size(); ++i) {
      if (const auto found = inner.find(code.results[i]); found != inner.end()) {
        frame[call.out[i]] = found->second;
      }
    }
    return bytes;
  }

  const Program& program_;
  std::size_t next_ = 0;
  std::set<std::size_t> saved_;
};

// Returns the bytes of a parameter with its gradient and the optimizer's state.
std::int64_t parameter_bytes(const Program& program, Slot slot, sim::Optimizer optimizer) {
  const Global& global = program.globals[slot];
  const std::int64_t bytes = hull(program.types[global.type]).end_bytes;
  return bytes * (global.requires_grad ? 2 + optimizer_tensors(optimizer) : 1);
}

}  // namespace

std::vector<std::int64_t> unit_times(const Program& program, const std::vector<StageUnit>& units,
                                     const Hardware& hardware) {
  const sim::Roofline times(hardware);
  const auto of = [&](const Code& code, std::size_t begin, std::size_t end) {
    sim::Time total = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const auto* op = std::get_if<Op>(&code.statements[i].action);
      if (!op) continue;
      const DType in = op->types.empty() ? DType::kF32 : program.types[op->types.front()].dtype;
      total += std::max(times.op_ns(*op, in), hardware.launch_ns);
    }
    return total;
  };
  std::vector<std::int64_t> costs;
  const Code& forward = program.codes[forward_of(program)];
  for (const StageUnit& unit : units) {
    costs.push_back(of(forward, unit.begin, unit.end));
    for (const auto* codes : {&unit.called, &unit.backward}) {
      for (const CodeId id : *codes) {
        costs.back() += of(program.codes[id], 0, program.codes[id].statements.size());
      }
    }
  }
  return costs;
}

std::vector<std::int64_t> unit_bytes(const Program& program, const std::vector<StageUnit>& units,
                                     sim::Optimizer optimizer, std::size_t alive) {
  std::vector<std::int64_t> costs;
  SavedStorages saved(program);
  SavedStorages::Frame frame;
  std::set<Slot> used;
  const Code& forward = program.codes[forward_of(program)];
  for (const StageUnit& unit : units) {
    costs.push_back(static_cast<std::int64_t>(alive) *
                    saved.save(forward, unit.begin, unit.end, frame));
    const auto use = [&](const Code& code, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        for_each_slot(code.statements[i].action, [&](Slot slot, Role) {
          if (slot >= program.globals.size()) return;
          const Slot alias = program.globals[slot].alias;
          const Slot base = alias == kNoSlot ? slot : alias;
          if (used.insert(base).second) costs.back() += parameter_bytes(program, base, optimizer);
        });
      }
    };
    use(forward, unit.begin, unit.end);
    for (const auto* codes : {&unit.called, &unit.backward}) {
      for (const CodeId id : *codes) use(program.codes[id], 0, program.codes[id].statements.size());
    }
  }
  return costs;
}

std::vector<std::size_t> even_stages(const std::vector<std::int64_t>& costs, std::size_t stages) {
  const std::size_t units = costs.size();
  std::vector<std::int64_t> before(units + 1, 0);  // running sums
  for (std::size_t i = 0; i < units; ++i) before[i + 1] = before[i] + costs[i];
  std::int64_t limit = 0;
  std::size_t at = 0;
  for (const std::size_t size : balance(costs, stages)) {
    limit = std::max(limit, before[at + size] - before[at]);
    at += size;
  }
  // Costs are scaled down so that sums of squares fit into 64 bits.
  const std::int64_t part = before.back() / 1'000'000 + 1;
  constexpr std::int64_t kNever = std::int64_t{1} << 62;  // no division is possible
  using Row = std::vector<std::int64_t>;
  std::vector<Row> least(stages + 1, Row(units + 1, kNever));  // least squares, by stages and units
  std::vector<std::vector<std::size_t>> last(stages + 1, std::vector<std::size_t>(units + 1));
  least[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t end = s; end <= units; ++end) {
      for (std::size_t begin = s - 1; begin < end; ++begin) {
        const std::int64_t cost = before[end] - before[begin];
        if (cost > limit || least[s - 1][begin] == kNever) continue;
        const std::int64_t squares = least[s - 1][begin] + (cost / part) * (cost / part);
        if (squares >= least[s][end]) continue;
        least[s][end] = squares;
        last[s][end] = end - begin;
      }
    }
  }
  std::vector<std::size_t> sizes(stages);
  at = units;
  for (std::size_t s = stages; s > 0; --s) at -= sizes[s - 1] = last[s][at];
  return sizes;
}

}  // namespace ferry::plan
