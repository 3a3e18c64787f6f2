#include "real/capture/bodies.h"

#include <algorithm>

#include "ferry/capture.h"
#include "real/tensors/torch_error.h"

namespace ferry::real::capture {
namespace {

bool same(const Code& a, const Code& b) {
  return a.name == b.name && a.arguments == b.arguments && a.saved == b.saved &&
         a.results == b.results &&
         std::equal(a.statements.begin(), a.statements.end(), b.statements.begin(),
                    b.statements.end(),
                    [](const Statement& x, const Statement& y) { return x.action == y.action; });
}

// Removes the times from the code and returns them.
std::vector<std::int64_t> take_times(Code& code) {
  std::vector<std::int64_t> times;
  for (Statement& statement : code.statements) {
    if (auto* const op = std::get_if<Op>(&statement.action)) {
      times.push_back(std::exchange(op->measured_ns, 0));
    }
  }
  return times;
}

}  // namespace

Bodies::Lowered Bodies::lower(NodeNumber node) {
  Frame frame(trace_, types_, globals_);
  Code code;
  code.kind = CodeKind::kBody;
  code.name = graph_.name(node);
  Lowered lowered;
  for (std::uint32_t i = 0; i < graph_.outputs(node); ++i) code.arguments.push_back(frame.fresh());
  for (std::size_t i = 0; i < graph_.packs(node).size(); ++i) code.saved.push_back(frame.fresh());
  for (const Edge& edge : graph_.edges(node)) {
    if (!std::holds_alternative<std::monostate>(edge)) code.results.push_back(kNoSlot);
  }
  if (const auto body = trace_.bodies.find(node); body != trace_.bodies.end()) {
    run(body->second, node, frame, code, lowered.unhooked);
  }
  code.statements = std::move(frame.statements);
  lowered.body = share(std::move(code));
  return lowered;
}

void Bodies::run(const Body& body, NodeNumber node, Frame& frame, Code& code,
                 std::vector<Ref>& unhooked) const {
  for (std::size_t i = 0; i < code.arguments.size() && i < body.arguments.size(); ++i) {
    if (body.arguments[i]) frame.own(*body.arguments[i], code.arguments[i]);
  }
  const std::vector<PackNumber>& packs = graph_.packs(node);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    const auto saved = body.saved.find(packs[i]);
    if (saved != body.saved.end()) frame.own(saved->second, code.saved[i]);
  }
  for (const Event& event : body.events) {
    if (const auto* const op = std::get_if<OpEvent>(&event)) {
      for (const Ref& in : op->in) need(in, node, frame, code, unhooked);
      frame.op(*op);
    } else if (const auto* const death = std::get_if<DeathEvent>(&event)) {
      frame.death(death->storage);
    }
  }
  const std::vector<Edge>& edges = graph_.edges(node);
  std::size_t at = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (std::holds_alternative<std::monostate>(edges[i])) continue;
    if (i < body.results.size() && body.results[i]) {
      need(*body.results[i], node, frame, code, unhooked);
      code.results[at] = frame.slot(*body.results[i]);
    }
    ++at;
  }
}

void Bodies::need(const Ref& ref, NodeNumber node, Frame& frame, Code& code,
                  std::vector<Ref>& unhooked) const {
  if (frame.knows(ref.storage)) return;
  const StorageInfo& info = trace_.storages[ref.storage];
  if (!info.in_backward) {
    const Slot slot = frame.fresh();
    code.saved.push_back(slot);
    frame.own(ref, slot);
    unhooked.push_back(ref);
  } else if (info.birth == Birth::kMet) {
    frame.meet(ref);
  } else {
    throw torch_error(CaptureError(graph_.name(node) +
                                   " uses what another node made in backward: it cannot "
                                   "be captured"));
  }
}

std::size_t Bodies::share(Code code) {
  const std::vector<std::int64_t> times = take_times(code);
  std::vector<std::size_t>& candidates = alike_[{code.name, code.statements.size()}];
  auto found = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t candidate) {
    return same(shared_[candidate].code, code);
  });
  if (found == candidates.end()) {
    candidates.push_back(shared_.size());
    found = candidates.end() - 1;
    shared_.push_back({std::move(code), std::vector<std::int64_t>(times.size()), 0});
  }
  Shared& shared = shared_[*found];
  for (std::size_t i = 0; i < times.size(); ++i) shared.total_ns[i] += times[i];
  ++shared.runs;
  return *found;
}

std::vector<Code> Bodies::codes() {
  std::vector<Code> codes;
  for (Shared& shared : shared_) {
    auto total = shared.total_ns.begin();
    for (Statement& statement : shared.code.statements) {
      if (auto* const op = std::get_if<Op>(&statement.action)) {
        op->measured_ns = *total++ / shared.runs;
      }
    }
    codes.push_back(std::move(shared.code));
  }
  return codes;
}

}  // namespace ferry::real::capture
