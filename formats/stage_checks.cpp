#include "formats/stage_checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "formats/effects.h"

namespace ferry {
namespace {

std::string line_text(std::uint32_t line) { return "line " + std::to_string(line); }

// A node's number belongs to its frame, so all uses of a node must be in the same stage.
void check_nodes(const Code& forward, std::span<const StagePiece> pieces) {
  std::set<std::uint32_t> earlier;
  for (const StagePiece& piece : pieces) {
    std::set<std::uint32_t> here;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      const Statement& statement = forward.statements[i];
      if (const auto* make = std::get_if<MakeNode>(&statement.action)) here.insert(make->id);
      const auto* save = std::get_if<Save>(&statement.action);
      if (save && earlier.contains(save->node)) {
        refuse_stage(piece, line_text(statement.line) + " saves for node " +
                                std::to_string(save->node) + ", made before");
      }
    }
    earlier.merge(here);
  }
}

// A When or an exclusion must be completely in one stage.
void check_regions(const Code& forward, std::span<const StagePiece> pieces) {
  std::vector<std::uint32_t> exclusions;
  std::size_t when_end = 0;
  std::uint32_t when_line = 0;
  for (const StagePiece& piece : pieces) {
    if (!exclusions.empty()) {
      refuse_stage(piece, "it is in the exclusion of " + line_text(exclusions.back()));
    }
    if (when_end > piece.begin)
      refuse_stage(piece, "it is under the when of " + line_text(when_line));
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
      const Statement& statement = forward.statements[i];
      if (const auto* when = std::get_if<When>(&statement.action)) {
        when_end = i + 1 + when->count;
        when_line = statement.line;
      } else if (const auto* exclude = std::get_if<Exclude>(&statement.action)) {
        if (exclude->begin) {
          exclusions.push_back(statement.line);
        } else {
          exclusions.pop_back();
        }
      }
    }
  }
}

// Checks streams and ambient state, which stay set after the code that sets them. Each device has
// its own streams, and stages exchange values on the default streams. So in each stage, any other
// stream must wait for the default stream, and the default stream must wait for it.
class Flow {
 public:
  explicit Flow(const Program& program) : program_(program) {}

  void check(const Code& forward, std::span<const StagePiece> pieces) {
    for (const StagePiece& piece : pieces) {
      piece_ = &piece;
      begin();
      for (std::size_t i = piece.begin; i < piece.end; ++i) i += run(forward.statements[i]);
    }
  }

 private:
  void begin();
  std::size_t run(const Statement& statement);  // returns how many of the next are skipped
  void compute(std::uint32_t line);
  void sync(const Sync& sync);

  const Program& program_;
  const StagePiece* piece_ = nullptr;
  std::uint32_t ambient_ = 0;
  std::uint32_t stream_ = 0;
  std::set<std::uint32_t> used_;    // streams other than the default one
  std::set<std::uint32_t> joined_;  // streams that waited for the default one in this stage
  std::map<std::uint32_t, std::set<std::uint32_t>> awaited_;  // for each: streams it waits for
};

// Checks the state at the beginning of a stage: it must be that at the beginning of a program.
void Flow::begin() {
  joined_.clear();
  if (stream_ != 0) refuse_stage(*piece_, "it is computed on stream " + std::to_string(stream_));
  if (ambient_ != 0) {
    refuse_stage(*piece_, "it is under ambient state " + std::to_string(ambient_));
  }
  const auto waits = awaited_.find(0);
  for (const std::uint32_t stream : used_) {
    if (waits != awaited_.end() && waits->second.contains(stream)) continue;
    refuse_stage(*piece_, "stream 0 does not wait before it for stream " + std::to_string(stream));
  }
}

std::size_t Flow::run(const Statement& statement) {
  const Action& action = statement.action;
  if (const auto* when = std::get_if<When>(&action)) return when->recomputing ? when->count : 0;
  if (std::holds_alternative<Op>(action) || std::holds_alternative<Backward>(action)) {
    compute(statement.line);
  } else if (const auto* call = std::get_if<Call>(&action)) {
    const std::vector<Statement>& statements = program_.codes[call->code].statements;
    for (std::size_t i = 0; i < statements.size(); ++i) i += run(statements[i]);
  } else if (const auto* set = std::get_if<SetStream>(&action)) {
    stream_ = set->stream;
  } else if (const auto* wait = std::get_if<Sync>(&action)) {
    sync(*wait);
  } else if (const auto* ambient = std::get_if<Ambient>(&action)) {
    ambient_ = ambient->state;
  }
  return 0;
}

void Flow::compute(std::uint32_t line) {
  for (auto& [stream, awaited] : awaited_) awaited.erase(stream_);
  if (stream_ == 0) return;
  used_.insert(stream_);
  if (piece_->begin == 0 || joined_.contains(stream_)) return;  // the first stage has no inputs
  refuse_stage(*piece_, line_text(line) + " computes on stream " + std::to_string(stream_) +
                            ", which does not wait in this stage for stream 0");
}

void Flow::sync(const Sync& sync) {
  std::set<std::uint32_t> awaited = awaited_[sync.from];
  awaited.insert(sync.from);
  awaited_[sync.to].merge(awaited);
  if (sync.from == 0 || joined_.contains(sync.from)) joined_.insert(sync.to);
}

// Follows edges through a stage: a graph task that begins in a stage must stay in it.
class Edges {
 public:
  Edges(const Program& program, const StagePiece& piece) : program_(program), piece_(piece) {}

  // `before` says for each argument if its edge leads into an earlier stage. Returns the same for
  // each result.
  std::vector<bool> follow(CodeId id, const std::vector<bool>& before) {
    const Code& code = program_.codes[id];
    std::set<Slot> found;
    const auto any = [&](const std::vector<Slot>& slots) {
      return std::any_of(slots.begin(), slots.end(),
                         [&](Slot slot) { return found.contains(slot); });
    };
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i]) found.insert(code.arguments[i]);
    }
    for (const Statement& statement : code.statements) {
      if (const auto* make = std::get_if<MakeNode>(&statement.action)) {
        if (any(make->in)) found.insert(make->out.begin(), make->out.end());
      } else if (const auto* call = std::get_if<Call>(&statement.action)) {
        std::vector<bool> in;
        for (const Slot slot : call->in) in.push_back(found.contains(slot));
        const std::vector<bool> out = follow(call->code, in);
        for (std::size_t i = 0; i < out.size(); ++i) {
          if (out[i]) found.insert(call->out[i]);
        }
      } else if (const auto* backward = std::get_if<Backward>(&statement.action)) {
        if (!any(backward->roots)) continue;
        refuse_stage(piece_, line_text(statement.line) + " goes backward into an earlier stage");
      }
    }
    std::vector<bool> results;
    for (const Slot slot : code.results) results.push_back(found.contains(slot));
    return results;
  }

 private:
  const Program& program_;
  const StagePiece& piece_;
};

void check_backwards(const StagedProgram& staged, std::span<const StagePiece> pieces) {
  for (std::size_t stage = 0; stage < pieces.size(); ++stage) {
    const CodeId code = staged.stages[stage].code;
    std::vector<bool> before(staged.program.codes[code].arguments.size());
    for (const StageRoute& route : staged.routes) {
      if (route.to == stage) before[route.argument] = route.edge;
    }
    Edges(staged.program, pieces[stage]).follow(code, before);
  }
}

}  // namespace

void refuse_stage(const StagePiece& piece, const std::string& why) {
  throw std::invalid_argument("unit " + piece.unit + " of line " + std::to_string(piece.line) +
                              " cannot begin a stage: " + why);
}

void check_cuts(const Program& program, CodeId forward, std::span<const StagePiece> pieces) {
  check_nodes(program.codes[forward], pieces);
  check_regions(program.codes[forward], pieces);
  Flow(program).check(program.codes[forward], pieces);
}

void check_routes(const StagedProgram& staged, std::span<const StagePiece> pieces) {
  check_backwards(staged, pieces);
  EffectsOf effects_of(staged.program);
  for (const StageRoute& route : staged.routes) {
    const Effects& from = effects_of(staged.stages[route.from].code);
    const Effects::Input& input = effects_of(staged.stages[route.to].code).inputs[route.argument];
    const StagePiece& piece = pieces[route.to];
    if (input.written) {
      refuse_stage(piece,
                   line_text(*input.written) + " writes in place what an earlier stage made");
    }
    const std::optional<TypeId> type = from.results[route.result].type;
    const Hull carried = type ? hull(staged.program.types[*type]) : Hull{};
    for (const Effects::Window& window : input.viewed) {
      if (window.hull.begin_bytes >= carried.begin_bytes &&
          window.hull.end_bytes <= carried.end_bytes) {
        continue;
      }
      refuse_stage(piece, line_text(window.line) + " views bytes " +
                              std::to_string(window.hull.begin_bytes) + " to " +
                              std::to_string(window.hull.end_bytes) +
                              " of a storage of which an earlier stage hands on " +
                              std::to_string(carried.begin_bytes) + " to " +
                              std::to_string(carried.end_bytes));
    }
  }
}

}  // namespace ferry
