#include "formats/code_check.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

namespace ferry {
namespace {

struct NodeState {
  std::size_t saved = 0;
  CodeId body = 0;
  std::uint32_t line = 0;
};

class Frame {
 public:
  Frame(const ProgramLookup& lookup, const Code& code, bool recomputing,
        const SummaryOf& summary_of)
      : lookup_(lookup),
        code_(code),
        recomputing_(recomputing),
        summary_of_(summary_of),
        line_(code.line) {}

  CodeSummary run() {
    take_signature();
    for (index_ = 0; index_ < code_.statements.size(); ++index_) {
      line_ = code_.statements[index_].line;
      std::visit(*this, code_.statements[index_].action);
      if (when_ && index_ + 1 == when_->end) end_when();
    }
    check_end();
    return std::move(summary_);
  }

  void operator()(const Op& op) {
    for (const Slot slot : op.in) need_tensor(slot);
    for (const std::uint32_t position : op.writes) {
      if (position >= op.in.size()) {
        fail("expected \"writes\" to be positions in \"in\", whose length is " +
             std::to_string(op.in.size()));
      }
    }
    if (op.types.size() != op.out.size()) fail("expected a type for each output");
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      const std::int64_t bytes = lookup_.type_hull(op.types[i], line_).end_bytes;
      assign_tensor(op.out[i], {.bytes = bytes, .argument = {}});
    }
  }

  void operator()(const View& view) {
    const TensorBytes place = need_tensor(view.of);
    reach(place, lookup_.type_hull(view.type, line_).end_bytes, "a view");
    assign_tensor(view.out, place);
  }

  void operator()(const MakeNode& node) {
    const Code& body = lookup_.code(node.body, CodeKind::kBody, line_);
    for (const Slot slot : node.in) need_live(slot);
    for (const Slot slot : node.saved) need_tensor(slot);
    for (const Slot slot : node.out) {
      SlotState& state = find(slot);
      if (state.freed) fail(named(slot) + " was freed");
      state.edge = true;
    }
    expect_count("inputs", node.in.size(), "results", body.results.size(), node.body);
    expect_count("outputs", node.out.size(), "arguments", body.arguments.size(), node.body);
    const NodeState state{.saved = node.saved.size(), .body = node.body, .line = line_};
    if (!nodes_.emplace(node.id, state).second) {
      fail("node " + std::to_string(node.id) + " is there already in this code");
    }
  }

  void operator()(const Save& save) {
    const auto node = nodes_.find(save.node);
    if (node == nodes_.end()) {
      fail("expected a node made before this, but there is no node " + std::to_string(save.node));
    }
    for (const Slot slot : save.slots) need_tensor(slot);
    node->second.saved += save.slots.size();
  }

  void operator()(const Free& free) {
    for (const Slot slot : free.slots) {
      if (is_global(slot)) fail(named(slot) + " lives for the whole run: it cannot be freed");
      need_live(slot).freed = true;
    }
  }

  void operator()(const Module& module) {
    if (module.enter) {
      for (const Slot slot : module.arguments.value_or(std::vector<Slot>())) need_live(slot);
      open_.emplace_back("module " + module.name);
    } else {
      close("module " + module.name);
    }
  }

  void operator()(const Exclude& exclude) {
    if (exclude.begin) {
      open_.emplace_back("exclude");
    } else {
      close("exclude");
    }
  }

  void operator()(const Call& call);

  void operator()(const Backward& backward) {
    if (backward.roots.empty()) fail("expected a root to go backward from");
    for (const Slot slot : backward.roots) need_live(slot);
    for (const Slot slot : backward.inputs) need_live(slot);
    if (backward.inputs.size() != backward.out.size()) {
      fail("expected a slot in \"out\" for the gradient of each of \"inputs\"");
    }
    for (const Slot slot : backward.out) {
      assign_tensor(slot, {});
      find(slot).edge = true;
    }
  }

  void operator()(const SetStream&) {}
  void operator()(const Sync&) {}
  void operator()(const RecordUse& use) { need_tensor(use.slot); }
  void operator()(const Raise&) { (when_ ? when_->raises : raises_) = true; }
  void operator()(const Ambient&) {}
  void operator()(const When& when);

  void operator()(const Move& move) {
    if (!is_global(move.global)) fail("expected \"move\": a global, not " + named(move.global));
  }

 private:
  using TensorBytes = SlotState::TensorBytes;

  // The state of the When whose statements are being read.
  struct Condition {
    std::size_t end = 0;
    std::size_t open = 0;  // regions around it
    bool raises = false;
  };

  [[noreturn]] void fail(const std::string& message) const {
    lookup_.fail(line_, message + (recomputing_ ? ", when this runs again" : ""));
  }

  static std::string named(Slot slot) { return "slot " + std::to_string(slot); }
  bool is_global(Slot slot) const { return slot < lookup_.program().globals.size(); }

  SlotState& find(Slot slot) {
    const auto [at, fresh] = slots_.try_emplace(slot);
    if (fresh && is_global(slot)) {
      at->second.tensor = {.bytes = lookup_.global_bytes(slot), .argument = {}};
      at->second.edge = true;
    }
    return at->second;
  }

  SlotState& need_live(Slot slot) {
    SlotState& state = find(slot);
    if (state.freed) fail(named(slot) + " is used after its free");
    if (!state.live()) fail(named(slot) + " is used before it is assigned");
    return state;
  }

  TensorBytes need_tensor(Slot slot) {
    const SlotState& state = need_live(slot);
    if (!state.tensor) fail(named(slot) + " carries an edge and no tensor: expected a tensor");
    if (state.tensor->argument) summary_.needs_tensor[*state.tensor->argument] = true;
    return *state.tensor;
  }

  // Checks that an access up to `end` fits in the bytes of `place`.
  void reach(const TensorBytes& place, std::int64_t end, const char* who) {
    if (place.bytes && end > *place.bytes) {
      fail("expected " + std::string(who) + " within its storage of " +
           std::to_string(*place.bytes) + " bytes, not up to byte " + std::to_string(end));
    }
    if (place.argument) {
      std::int64_t& needed = summary_.needs_bytes[*place.argument];
      needed = std::max(needed, end);
    }
  }

  void assign_tensor(Slot slot, TensorBytes place) {
    SlotState& state = find(slot);
    if (state.freed) fail(named(slot) + " is assigned after its free");
    if (state.tensor) fail(named(slot) + " is assigned twice");
    state.tensor = place;
  }

  void close(const std::string& what) {
    if (when_ && open_.size() == when_->open) {
      fail(what +
           " began before the \"when\" that it ends in: expected both inside it, or neither");
    }
    if (open_.empty() || open_.back() != what) {
      fail(open_.empty() ? what + " ends here, but it did not begin"
                         : "expected the end of " + open_.back() + ", not of " + what);
    }
    open_.pop_back();
  }

  void expect_count(const char* ours, std::size_t found, const char* theirs, std::size_t wanted,
                    CodeId code) const {
    if (found == wanted) return;
    fail("expected as many " + std::string(ours) + " as code " + std::to_string(code) + " has " +
         theirs + ", " + std::to_string(wanted) + ", not " + std::to_string(found));
  }

  void take_signature();
  void end_when();
  void check_end();

  const ProgramLookup& lookup_;
  const Code& code_;
  const bool recomputing_;
  const SummaryOf& summary_of_;
  std::size_t index_ = 0;
  std::uint32_t line_;
  CodeSummary summary_;
  std::map<Slot, SlotState> slots_;
  std::map<std::uint32_t, NodeState> nodes_;
  std::vector<std::string> open_;
  std::optional<Condition> when_;
  bool raises_ = false;
};

void Frame::take_signature() {
  const bool is_main = code_.kind == CodeKind::kMain;
  const bool is_body = code_.kind == CodeKind::kBody;
  if (is_main && !(code_.arguments.empty() && code_.results.empty())) {
    fail("expected a main code that takes and returns nothing");
  }
  if (!is_body && !code_.saved.empty()) fail("expected \"saved\" only in a body");
  summary_.needs_tensor.resize(code_.arguments.size());
  summary_.needs_bytes.resize(code_.arguments.size());
  for (std::size_t i = 0; i < code_.arguments.size(); ++i) {
    // A segment's arguments come from its call; a body's are gradients of unknown size.
    const TensorBytes place{.bytes = {}, .argument = is_body ? std::nullopt : std::optional(i)};
    assign_tensor(code_.arguments[i], place);
    find(code_.arguments[i]).edge = true;
  }
  for (const Slot slot : code_.saved) {
    assign_tensor(slot, {});
    find(slot).edge = true;
  }
}

void Frame::operator()(const Call& call) {
  const Code& callee = lookup_.code(call.code, CodeKind::kSegment, line_);
  const CodeSummary& about = summary_of_(call.code, line_);
  summary_.depth = std::max(summary_.depth, about.depth + 1);
  lookup_.check_depth(summary_.depth, line_);
  expect_count("inputs", call.in.size(), "arguments", callee.arguments.size(), call.code);
  expect_count("outputs", call.out.size(), "results", callee.results.size(), call.code);
  if (call.captured > call.in.size()) {
    fail("expected at most the " + std::to_string(call.in.size()) +
         " of \"in\" to be captured, not " + std::to_string(call.captured));
  }
  if (call.captured > 0 && call.recompute != Recompute::kCheckpoint) {
    fail("expected \"captured\" only with \"recompute\":\"checkpoint\"");
  }
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    need_live(call.in[i]);
    if (!about.needs_tensor[i]) continue;
    reach(need_tensor(call.in[i]), about.needs_bytes[i], "what the segment views");
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    SlotState result = about.results[i];
    if (result.tensor && result.tensor->argument) {
      result.tensor = find(call.in[*result.tensor->argument]).tensor;
    }
    if (result.tensor) assign_tensor(call.out[i], *result.tensor);
    SlotState& state = find(call.out[i]);
    if (state.freed) fail(named(call.out[i]) + " is assigned after its free");
    state.edge = true;  // its edge depends on grad mode
  }
}

void Frame::operator()(const When& when) {
  if (when_) fail("expected no \"when\" inside another");
  const std::size_t left = code_.statements.size() - index_ - 1;
  if (when.count > left) {
    fail("expected \"count\": at most the " + std::to_string(left) + " statements after it, not " +
         std::to_string(when.count));
  }
  if (when.recomputing != recomputing_) {
    index_ += when.count;
  } else if (when.count > 0) {
    when_ = {.end = index_ + 1 + when.count, .open = open_.size(), .raises = false};
  }
}

void Frame::end_when() {
  if (open_.size() > when_->open && !when_->raises) {
    fail("expected the end of " + open_.back() + " before the end of its when");
  }
  open_.resize(when_->open);
  when_.reset();
}

void Frame::check_end() {
  line_ = code_.line;
  for (const Slot slot : code_.results) {
    if (slot == kNoSlot) {
      if (code_.kind != CodeKind::kBody) fail("expected a slot for each result of a segment");
      continue;
    }
    if (code_.kind == CodeKind::kBody) need_tensor(slot);
    summary_.results.push_back(need_live(slot));
  }
  for (const auto& [id, node] : nodes_) {
    line_ = node.line;
    expect_count("saved tensors", node.saved, "saved slots",
                 lookup_.program().codes[node.body].saved.size(), node.body);
  }
  if (!open_.empty() && !raises_) {
    line_ = code_.statements.back().line;
    fail("expected the end of " + open_.back() + " before the end of its code");
  }
}

}  // namespace

CodeSummary check_code(const ProgramLookup& lookup, const Code& code, bool recomputing,
                       const SummaryOf& summary_of) {
  return Frame(lookup, code, recomputing, summary_of).run();
}

}  // namespace ferry
