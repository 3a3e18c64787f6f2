#include "tests/shared/replay/span_results.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ferry::test {
namespace {

std::string written(const VersionThen& version) {
  return "one of the variables needed for gradient computation has been modified by an inplace "
         "operation: it is at version " +
         std::to_string(*version.now) + "; expected version " + std::to_string(version.then) +
         " instead";
}

template <class List, class T>
bool has(const List& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

bool SpanResults::can_run_again(const SpanCall& call) const {
  if (!call.in_place_of_span) return false;
  for (const SpanCall::Argument& argument : call.arguments) {
    if (!is_spans(argument.storage)) {
      if (argument.written) return false;
      continue;
    }
    if (!argument.plain) return false;
    const bool defines = argument.written && call.overwrites && argument.whole;
    if (known_.at(argument.storage).blank && !defines) return false;
  }
  return std::all_of(call.outputs.begin(), call.outputs.end(),
                     [](const SpanCall::Output& output) { return output.plain; });
}

void SpanResults::ran(const SpanCall& call) {
  if (ended_) return;
  if (can_run_again(call)) return record(call);
  for (const SpanCall::Argument& argument : call.arguments) {
    if (!is_spans(argument.storage)) continue;
    Known& known = known_.at(argument.storage);
    known.lost = argument.written || known.blank;
  }
}

void SpanResults::record(const SpanCall& seen) {
  Call call;
  call.seen = seen;
  const auto takes = [&seen](std::uint64_t storage) {
    return std::any_of(seen.arguments.begin(), seen.arguments.end(),
                       [storage](const auto& argument) { return argument.storage == storage; });
  };
  for (std::size_t i = 0; i < seen.arguments.size(); ++i) {
    const SpanCall::Argument& argument = seen.arguments[i];
    if (!is_spans(argument.storage)) {
      call.outside.push_back(i);
      continue;
    }
    call.uses.push_back(argument.storage);
    if (!argument.written) continue;
    call.changes.push_back(argument.storage);
    if (seen.overwrites && argument.whole) known_.at(argument.storage).blank = false;
  }
  for (const SpanCall::Output& output : seen.outputs) {
    if (output.storage == 0 || takes(output.storage) || known_.contains(output.storage)) continue;
    known_[output.storage] = {seen.blank, false};
    call.makes.push_back(output.storage);
    call.changes.push_back(output.storage);
  }
  if (call.changes.empty()) return;
  ++counts_.calls;
  calls_.push_back(std::move(call));
}

void SpanResults::pack(std::uint64_t storage, const VersionThen& version, bool plain) {
  const bool made = !ended_ && plain && is_spans(storage) && !known_.at(storage).blank;
  // Once it has ended, it has no hooks around.
  const bool passed = !made && passes_ && !ended_;
  packs_.push_back({storage, calls_.size(), version, made, passed && moves_, true});
  ++(made ? counts_.saved : counts_.passed_on);
  if (passed) ++counts_.passed;
}

// The calls that made what these stand for, as it was when they were saved.
std::set<std::size_t> SpanResults::needed(const std::vector<std::size_t>& packs) const {
  std::set<std::size_t> needed;
  const std::function<void(std::uint64_t, std::size_t)> need = [&](std::uint64_t storage,
                                                                   std::size_t before) {
    for (std::size_t i = before; i-- > 0;) {
      if (!has(calls_[i].changes, storage) || !needed.insert(i).second) continue;
      for (const std::uint64_t used : calls_[i].uses) need(used, i);
    }
  };
  for (const std::size_t each : packs) {
    if (packs_[each].made) need(packs_[each].storage, packs_[each].calls);
  }
  return needed;
}

void SpanResults::end() {
  ended_ = true;
  std::vector<std::size_t> all(packs_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (const std::size_t i : needed(all)) {
    for (const std::size_t at : calls_[i].outside) {
      ++counts_.held;
      const SpanCall::Argument& argument = calls_[i].seen.arguments[at];
      if (!argument.passes || argument.version.is_written() || !passes_) continue;
      ++counts_.passed;
      calls_[i].passed.insert(at);
    }
  }
  std::erase_if(all, [this](std::size_t i) { return !packs_[i].alive; });
  left_ = needed(all);
  counts_.calls_left = static_cast<std::int64_t>(left_.size());
}

std::string SpanResults::unpack(std::size_t pack, std::int64_t task, int thread) {
  steps_.clear();
  const Pack& saved = packs_[pack];
  if (saved.version.is_written()) return written(saved.version);
  if (!saved.made) return "";
  if (task >= 0) {
    const auto key = std::pair{task, thread};
    if (!runs_.contains(key)) {
      Run run{packs_.size(), {}};
      for (std::size_t i = 0; i < packs_.size(); ++i) {
        if (packs_[i].made && packs_[i].alive) run.ready.insert(i);
      }
      const std::string error = replay({run.ready.begin(), run.ready.end()});
      if (!error.empty()) return error;
      runs_[key] = std::move(run);
    }
    if (runs_[key].ready.erase(pack) > 0) return "";
  }
  return replay({pack});
}

std::string SpanResults::replay(const std::vector<std::size_t>& packs) {
  const std::set<std::size_t> in_order = needed(packs);
  const std::vector<std::size_t> calls(in_order.begin(), in_order.end());
  ++counts_.replays;
  counts_.calls_replayed += static_cast<std::int64_t>(calls.size());
  std::set<std::uint64_t> targets;
  for (const std::size_t each : packs) targets.insert(packs_[each].storage);
  for (std::size_t step = 0; step < calls.size(); ++step) {
    const Call& call = calls_[calls[step]];
    std::int64_t moved = 0;
    for (const std::size_t at : call.outside) {
      const SpanCall::Argument& argument = call.seen.arguments[at];
      if (argument.version.is_written()) return written(argument.version);
      if (call.passed.contains(at) && moves_ && argument.storage != 0) ++moved;
    }
    steps_.push_back(alive_before(step, calls, targets) + moved);
    if (call.seen.other_bytes == 0 || call.makes.empty()) continue;
    return "ferry::replay: an operator that ran again made a storage of " +
           std::to_string(call.seen.other_bytes) + " bytes, and in forward one of " +
           std::to_string(kBytes);
  }
  return "";
}

// What was made so far, and is a result or is used from that step on.
std::int64_t SpanResults::alive_before(std::size_t step, const std::vector<std::size_t>& calls,
                                       const std::set<std::uint64_t>& targets) const {
  std::int64_t alive = 0;
  for (std::size_t i = 0; i < step; ++i) {
    for (const std::uint64_t made : calls_[calls[i]].makes) {
      bool is_needed = targets.contains(made);
      for (std::size_t later = step; later < calls.size(); ++later) {
        is_needed |= has(calls_[calls[later]].uses, made);
      }
      alive += is_needed ? 1 : 0;
    }
  }
  return alive;
}

void SpanResults::drop(std::size_t pack) {
  packs_[pack].alive = false;
  for (auto& [key, run] : runs_) run.ready.erase(pack);
}

void SpanResults::task_ended(std::int64_t task) {
  std::erase_if(runs_, [task](const auto& entry) { return entry.first.first == task; });
}

std::set<std::uint64_t> SpanResults::held() const {
  std::set<std::uint64_t> held;
  bool has_made = !ended_;
  for (const Pack& pack : packs_) {
    has_made |= pack.made && pack.alive;
    if (pack.alive && !pack.made && !pack.moved) held.insert(pack.storage);
  }
  for (std::size_t i = 0; i < calls_.size() && has_made; ++i) {
    if (ended_ && !left_.contains(i)) continue;
    for (const std::size_t at : calls_[i].outside) {
      const std::uint64_t storage = calls_[i].seen.arguments[at].storage;
      if (storage != 0 && !(calls_[i].passed.contains(at) && moves_)) held.insert(storage);
    }
  }
  return held;
}

std::int64_t SpanResults::made_again() const {
  std::int64_t made = 0;
  for (const auto& [key, run] : runs_) {
    std::set<std::uint64_t> storages;
    for (const std::size_t pack : run.ready) storages.insert(packs_[pack].storage);
    made += static_cast<std::int64_t>(storages.size());
  }
  return made;
}

}  // namespace ferry::test
