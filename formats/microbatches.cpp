#include "formats/microbatches.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/limits.h"

namespace ferry {

namespace {

// Returns (micro-batch, true for its forward) in the order of the schedule.
std::vector<std::pair<std::int64_t, bool>> schedule(std::int64_t count, MicrobatchOrder order) {
  std::vector<std::pair<std::int64_t, bool>> steps;
  if (order == MicrobatchOrder::kFbfb) {
    for (std::int64_t i = 0; i < count; ++i) {
      steps.emplace_back(i, true);
      steps.emplace_back(i, false);
    }
    return steps;
  }
  const std::int64_t ahead =
      order == MicrobatchOrder::kFfbb ? count : std::min<std::int64_t>(2, count);
  for (std::int64_t i = 0; i < ahead; ++i) steps.emplace_back(i, true);
  if (order == MicrobatchOrder::kFfbb) {
    for (std::int64_t i = count; i-- > 0;) steps.emplace_back(i, false);
    return steps;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    steps.emplace_back(i, false);
    if (i + ahead < count) steps.emplace_back(i + ahead, true);
  }
  return steps;
}

}  // namespace

std::optional<MainStep> main_step(const Program& program) {
  const auto& statements = program.codes[program.main].statements;
  const Call* call = statements.size() == 2 ? std::get_if<Call>(&statements[0].action) : nullptr;
  const Backward* backward = call ? std::get_if<Backward>(&statements[1].action) : nullptr;
  if (!backward) return std::nullopt;
  return MainStep{*call, *backward, statements[0].line, statements[1].line};
}

namespace {

std::size_t callers_of(const Program& program, CodeId id) {
  std::size_t callers = 0;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      callers += call && call->code == id ? 1 : 0;
    }
  }
  return callers;
}

}  // namespace

Program with_main_step(const Program& program) {
  if (main_step(program)) return program;
  const std::vector<Statement>& main = program.codes[program.main].statements;
  const Call* call = main.empty() ? nullptr : std::get_if<Call>(&main.front().action);
  if (!call || callers_of(program, call->code) != 1) return program;
  const Statement* backward = nullptr;
  for (std::size_t i = 1; i < main.size(); ++i) {
    const Action& action = main[i].action;
    if (!backward && std::holds_alternative<Backward>(action)) {
      backward = &main[i];
    } else if (!std::holds_alternative<Free>(action) && !std::holds_alternative<View>(action)) {
      return program;
    }
  }
  if (!backward) return program;
  const std::vector<Slot>& roots = std::get<Backward>(backward->action).roots;
  Program result = program;
  Call kept = *call;
  kept.out.clear();
  std::vector<Slot>& results = result.codes[call->code].results;
  results.clear();
  for (std::size_t i = 0; i < call->out.size(); ++i) {
    if (std::find(roots.begin(), roots.end(), call->out[i]) == roots.end()) continue;
    kept.out.push_back(call->out[i]);
    results.push_back(program.codes[call->code].results[i]);
  }
  result.codes[result.main].statements = {{std::move(kept), main.front().line}, *backward};
  return result;
}

Program with_microbatches(const Program& given, std::int64_t count, MicrobatchOrder order) {
  if (count < 1) throw std::invalid_argument("a step has at least one micro-batch");
  if (count == 1) return given;
  const Program program = with_main_step(given);
  const std::optional<MainStep> step = main_step(program);
  if (!step) {
    throw std::invalid_argument(
        "micro-batches need a program whose main code is one call and one backward");
  }
  const auto& [call, backward, call_line, backward_line] = *step;
  Program result = program;
  Code& main = result.codes[result.main];
  main.statements.clear();
  const auto globals = static_cast<Slot>(program.globals.size());
  Slot stride = 1;  // above every slot of the main code
  for (const auto* slots : {&call.out, &backward.out}) {
    for (const Slot slot : *slots) stride = std::max(stride, slot - globals + 1);
  }
  if (globals + std::int64_t{stride} * count > limits::kSlots) {
    throw std::invalid_argument(std::to_string(count) + " micro-batches need more than " +
                                std::to_string(limits::kSlots) + " slots in the main code");
  }
  const auto shifted = [&](std::vector<Slot> slots, std::int64_t microbatch) {
    for (Slot& slot : slots) {
      if (slot >= globals) slot += stride * static_cast<Slot>(microbatch);
    }
    return slots;
  };
  for (const auto& [microbatch, forward] : schedule(count, order)) {
    if (forward) {
      Call copy = call;
      copy.out = shifted(copy.out, microbatch);
      main.statements.push_back({std::move(copy), call_line});
    } else {
      Backward copy = backward;
      copy.roots = shifted(copy.roots, microbatch);
      copy.inputs = shifted(copy.inputs, microbatch);
      copy.out = shifted(copy.out, microbatch);
      main.statements.push_back({std::move(copy), backward_line});
      main.statements.push_back({Free{shifted(call.out, microbatch)}, backward_line});
    }
  }
  return result;
}

}  // namespace ferry
