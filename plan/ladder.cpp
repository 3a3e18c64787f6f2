#include "plan/ladder.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "formats/layout.h"
#include "formats/modules.h"
#include "formats/outline.h"
#include "scenarios/roofline.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// A storage of the forward: the statements that make, read and save it.
struct Made {
  std::int64_t bytes = 0;
  std::size_t at = 0;
  bool before = false;  // it was there before the forward
  std::vector<std::size_t> reads = {};
  std::vector<std::size_t> saves = {};
};

// The forward's statements as costs.
class Forward {
 public:
  Forward(const Program& program, const Code& code, const Hardware& hardware)
      : program_(program),
        hardware_(hardware),
        ns_(code.statements.size() + 1, 0),
        saves_(ns_.size(), 0) {
    for (Slot slot = 0; slot < program.globals.size(); ++slot) add_before(slot);
    for (const Slot slot : code.arguments) add_before(slot);
    for (std::size_t i = 0; i < code.statements.size(); ++i) {
      ns_[i + 1] = ns_[i];
      saves_[i + 1] = saves_[i];
      take(i, code.statements[i].action);
    }
  }

  // Bytes of what is made before a statement, and saved.
  std::int64_t saved_before(std::size_t at) const {
    std::int64_t bytes = 0;
    for (const Made& made : made_) {
      if (!made.before && made.at < at && !made.saves.empty()) bytes += made.bytes;
    }
    return bytes;
  }

  // The spans of a module, each up to the last save of one more storage.
  std::vector<Span> spans_of(const ModuleRun& run) const {
    const auto inside = [&run](std::size_t at) { return at >= run.begin && at < run.end; };
    Span span{.module = run.module, .begin = run.begin, .end = run.end};
    span.all_saves = saves_[run.end] - saves_[run.begin];
    span.before_bytes = saved_before(run.begin);
    std::map<std::size_t, std::int64_t> freed;  // by last save
    for (const Made& made : made_) {
      if (made.before || made.at >= run.end || made.bytes == 0) continue;
      if (made.at < run.begin) {
        const bool read = std::any_of(made.reads.begin(), made.reads.end(), inside);
        if (read && made.saves.empty()) span.bytes -= made.bytes;
      } else if (!made.saves.empty() && inside(made.saves.back())) {
        freed[made.saves.back()] += made.bytes;
      }
    }
    std::vector<Span> spans;
    for (const auto& [last, bytes] : freed) {
      span.bytes += bytes;
      span.ns = ns_[last + 1] - ns_[run.begin];
      span.saves = saves_[last + 1] - saves_[run.begin];
      if (span.bytes > 0) spans.push_back(span);
    }
    return spans;
  }

 private:
  void add_before(Slot slot) {
    storage_of_[slot] = made_.size();
    made_.push_back({.bytes = 0, .at = 0, .before = true});
  }
  void make(Slot slot, std::int64_t bytes, std::size_t at) {
    storage_of_[slot] = made_.size();
    made_.push_back({.bytes = bytes, .at = at});
  }
  void see(const std::vector<Slot>& slots, std::size_t at, std::vector<std::size_t> Made::*list) {
    for (const Slot slot : slots) {
      const auto storage = storage_of_.find(slot);
      if (storage != storage_of_.end()) (made_[storage->second].*list).push_back(at);
    }
  }
  void save(const std::vector<Slot>& slots, std::size_t at) {
    see(slots, at, &Made::saves);
    saves_[at + 1] += slots.size();
  }
  void take(std::size_t at, const Action& action) {
    if (const auto* op = std::get_if<Op>(&action)) {
      see(op->in, at, &Made::reads);
      for (std::size_t i = 0; i < op->out.size(); ++i) {
        make(op->out[i], hull(program_.types[op->types[i]]).end_bytes, at);
      }
      const DType computes = op->types.empty() ? DType::kF32 : program_.types[op->types[0]].dtype;
      ns_[at + 1] += kernel_ns(*op, computes, hardware_);
    } else if (const auto* view = std::get_if<View>(&action)) {
      const auto storage = storage_of_.find(view->of);
      if (storage != storage_of_.end()) storage_of_[view->out] = storage->second;
    } else if (const auto* call = std::get_if<Call>(&action)) {
      see(call->in, at, &Made::reads);
      for (const Slot slot : call->out) make(slot, 0, at);
    } else if (const auto* node = std::get_if<MakeNode>(&action)) {
      save(node->saved, at);
    } else if (const auto* save = std::get_if<Save>(&action)) {
      this->save(save->slots, at);
    }
  }

  const Program& program_;
  const Hardware& hardware_;
  std::vector<std::int64_t> ns_;    // of the statements before each
  std::vector<std::size_t> saves_;  // of tensors, likewise
  std::map<Slot, std::size_t> storage_of_;
  std::vector<Made> made_;
};

// Whether a module can be outlined, asked of one module for all whose names differ in numbers.
class Outlinable {
 public:
  explicit Outlinable(const Program& program) : program_(program) {}
  bool operator()(const std::string& module) {
    std::string family;
    for (const char c : module) family += c >= '0' && c <= '9' ? '#' : c;
    const auto [known, fresh] = known_.try_emplace(std::move(family), true);
    if (!fresh) return known->second;
    try {
      outline(program_, std::span(&module, 1));
    } catch (const std::invalid_argument&) {
      known->second = false;
    }
    return known->second;
  }

 private:
  const Program& program_;
  std::map<std::string, bool> known_;
};

bool recomputes(const Statement& statement) {
  const auto* call = std::get_if<Call>(&statement.action);
  return call && is_segment(*call);
}

bool has_checkpoints(const Program& program) {
  return std::any_of(program.codes.begin(), program.codes.end(), [](const Code& code) {
    return std::any_of(code.statements.begin(), code.statements.end(), recomputes);
  });
}

// Drops the levels that others undercut: what remains is convex, from the first on. Levels on a
// straight line stay: a budget may lie between them.
template <class Level>
void keep_hull(std::vector<Level>& levels) {
  std::stable_sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) {
    return std::pair(a.bytes, a.ns) < std::pair(b.bytes, b.ns);
  });
  std::vector<Level> hull;
  for (Level& level : levels) {
    if (!hull.empty() && level.bytes == hull.back().bytes) continue;
    while (hull.size() > 1 && hull.back().ns >= level.ns) hull.pop_back();
    while (hull.size() > 1) {
      const Level& a = hull[hull.size() - 2];
      const Level& b = hull.back();
      const Wide over = Wide{b.ns - a.ns} * (level.bytes - a.bytes);
      if (over <= Wide{level.ns - a.ns} * (b.bytes - a.bytes)) break;
      hull.pop_back();
    }
    hull.push_back(std::move(level));
  }
  levels = std::move(hull);
}

}  // namespace

std::vector<Span> module_spans(const Program& program, const Hardware& hardware) {
  const std::optional<CodeId> forward = forward_code(program);
  if (!forward || has_checkpoints(program)) return {};
  const Code& code = program.codes[*forward];
  const Forward costs(program, code, hardware);
  std::vector<ModuleRun> runs = module_runs(code.statements);
  std::sort(runs.begin(), runs.end(),
            [](const ModuleRun& a, const ModuleRun& b) { return a.begin < b.begin; });
  std::map<std::string, int> times;
  for (const ModuleRun& run : runs) ++times[run.module];
  const bool calls = marks_calls(program);
  Outlinable can_be_segment(program);
  std::vector<Span> found;
  std::size_t call_end = 0;
  for (const ModuleRun& run : runs) {
    if (times[run.module] > 1) continue;  // its runs have one name
    if (calls) {
      // A call inside another one runs as it is.
      if (run.begin < call_end || !module_marker(code.statements[run.begin])->arguments) continue;
      call_end = run.end;
    }
    std::vector<Span> spans = costs.spans_of(run);
    if (spans.empty() || !can_be_segment(run.module)) continue;
    found.insert(found.end(), spans.begin(), spans.end());
  }
  return found;
}

std::int64_t saved_bytes(const Program& program, const Hardware& hardware) {
  const std::optional<CodeId> forward = forward_code(program);
  if (!forward) return 0;
  const Code& code = program.codes[*forward];
  return Forward(program, code, hardware).saved_before(code.statements.size());
}

Ladder::Ladder(std::vector<Span> spans) : all_(std::move(spans)) {
  for (std::size_t at = 0; at < all_.size();) root_.inner.push_back(module_at(at));
  climb(root_);
  keep_hull(root_.levels);
}

// The module whose first span is at `at`; moves `at` past its spans and those of modules inside it.
Ladder::Module Ladder::module_at(std::size_t& at) const {
  const std::size_t begin = all_[at].begin, end = all_[at].end;
  const std::size_t first = at;
  while (at < all_.size() && all_[at].begin == begin && all_[at].end == end) ++at;
  const std::size_t own = at;
  Module module;
  while (at < all_.size() && all_[at].begin < end) module.inner.push_back(module_at(at));
  climb(module);
  for (std::size_t s = first; s < own; ++s) {
    module.levels.push_back({.bytes = all_[s].bytes, .ns = all_[s].ns, .span = s});
  }
  keep_hull(module.levels);
  return module;
}

// The levels that its inner modules make together: the cheapest step first, of equally cheap ones
// that of the earlier module, whose bytes are needed back later.
void Ladder::climb(Module& module) const {
  struct Step {
    std::size_t inner;
    std::int64_t bytes;
    std::int64_t ns;
  };
  std::vector<Step> steps;
  for (std::size_t i = 0; i < module.inner.size(); ++i) {
    const std::vector<Level>& levels = module.inner[i].levels;
    for (std::size_t l = 1; l < levels.size(); ++l) {
      steps.push_back({i, levels[l].bytes - levels[l - 1].bytes, levels[l].ns - levels[l - 1].ns});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return Wide{a.ns} * b.bytes < Wide{b.ns} * a.bytes;
  });
  Level level;
  module.levels.push_back(level);
  for (const Step& step : steps) {
    module.steps.push_back(step.inner);
    level.bytes += step.bytes;
    level.ns += step.ns;
    level.steps = module.steps.size();
    module.levels.push_back(level);
  }
}

std::vector<Span> Ladder::spans(std::size_t rung) const {
  std::vector<Span> found;
  collect(root_, rung, found);
  return found;
}

void Ladder::collect(const Module& module, std::size_t level, std::vector<Span>& found) const {
  const Level& here = module.levels[level];
  if (here.span) {
    found.push_back(all_[*here.span]);
    return;
  }
  std::vector<std::size_t> levels(module.inner.size(), 0);
  for (std::size_t s = 0; s < here.steps; ++s) ++levels[module.steps[s]];
  for (std::size_t i = 0; i < module.inner.size(); ++i) collect(module.inner[i], levels[i], found);
}

}  // namespace ferry::plan
