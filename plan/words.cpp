#include "plan/words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "formats/spans.h"
#include "formats/statements.h"

namespace ferry::plan {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A segment's name, split at its first number: "layers.", "7", ".mlp".
struct Numbered {
  std::string before;
  std::string number;
  std::string after;

  explicit Numbered(const std::string& name) {
    std::size_t at = 0;
    while (at < name.size() && !is_digit(name[at])) before += name[at++];
    while (at < name.size() && is_digit(name[at])) number += name[at++];
    after = name.substr(at);
  }
  bool is_family_of(const Numbered& other) const {
    return !number.empty() && !other.number.empty() && before == other.before &&
           after == other.after;
  }
};

// Segments with consecutive numbers that are recomputed in the same way.
struct Range {
  Numbered first;
  std::string last;
  std::string how;
};

std::string to_text(const Range& range) {
  const Numbered& first = range.first;
  std::string number = first.number;
  if (range.last != number) number = "{" + number + "-" + range.last + "}";
  return first.before + number + first.after + range.how;
}

bool follows(const std::string& number, const std::string& last) {
  return number.size() < 10 && last.size() < 10 && std::stoll(number) == std::stoll(last) + 1;
}

void add(std::vector<Range>& ranges, const std::string& name, const std::string& how) {
  const Numbered segment(name);
  for (Range& range : ranges) {
    if (range.how != how || !segment.is_family_of(range.first)) continue;
    if (!follows(segment.number, range.last)) continue;
    range.last = segment.number;
    return;
  }
  ranges.push_back({segment, segment.number, how});
}

std::string recomputed(const Mix& mix, const std::vector<std::string>& names,
                       const Survey& survey) {
  std::vector<Range> ranges;
  for (std::size_t s = 0; s < names.size(); ++s) {
    if (!mix.recompute[s]) continue;
    const SurveyedSegment& segment = survey.segments[s];
    std::size_t again = 0;
    for (std::size_t p = segment.first; p < segment.end; ++p) {
      if (mix.packs[p] == PlanChoice::kRecompute) ++again;
    }
    add(ranges, names[s].empty() ? "segment " + std::to_string(s) : names[s],
        " (" + std::to_string(again) + " of " + std::to_string(segment.end - segment.first) +
            " saves)");
  }
  std::string text;
  for (const Range& range : ranges) text += (text.empty() ? "recompute " : ", ") + to_text(range);
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Returns the block of a module: "h.3" for "h.3.mlp", "enc0" for "enc0.norm1", "head" for
// "head.norm".
std::string block_of(const std::string& module) {
  const Numbered numbered(module);
  if (!numbered.number.empty()) return numbered.before + numbered.number;
  return module.substr(0, module.find('.'));
}

// Returns the innermost module of each statement.
std::vector<std::string> modules_of(const Statements& statements) {
  std::vector<std::string> found, open;
  for (const Statement& statement : statements) {
    if (const auto* module = std::get_if<Module>(&statement.action)) {
      if (module->enter) {
        open.push_back(module->name);
      } else if (!open.empty()) {
        open.pop_back();
      }
    }
    found.push_back(open.empty() ? "" : open.back());
  }
  return found;
}

std::string without_namespace(const std::string& name) {
  return name.substr(name.starts_with("aten.") ? 5 : 0);
}

// Counts for each operator the spans that contain it and do not keep it.
void count_times(const std::vector<PlanSpan>& spans, std::vector<std::size_t>& times) {
  for (const PlanSpan& span : spans) {
    for (std::uint64_t i = span.first; i <= span.last && i < times.size(); ++i) {
      if (!std::binary_search(span.keep.begin(), span.keep.end(), i)) ++times[i];
    }
    count_times(span.inner, times);
  }
}

std::string and_moves(std::string text, const Mix& mix, const Survey& survey) {
  const std::size_t moved = moved_groups(mix, survey).size();
  if (moved > 0) {
    text += (text.empty() ? "offload " : "; offload ") + std::to_string(moved) +
            (moved == 1 ? " storage" : " storages");
  }
  return text.empty() ? text : text + "; keep the rest";
}

}  // namespace

std::string in_words(const Mix& mix, const std::vector<std::string>& names, const Survey& survey) {
  return and_moves(recomputed(mix, names, survey), mix, survey);
}

std::vector<BlockWords> described(const Program& program, const std::vector<PlanSpan>& spans) {
  std::vector<BlockWords> blocks;
  const std::optional<CodeId> forward = spanned_code(program);
  if (!forward) return blocks;
  const Statements& statements = program.codes[*forward].statements;
  const std::vector<std::string> modules = modules_of(statements);
  const std::vector<OperatorRange> ranges = operator_ranges(program);
  std::vector<std::size_t> times(ranges.size(), 0);
  count_times(spans, times);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (times[i] == 0) continue;
    const std::string block = block_of(modules[ranges[i].op]);
    const Op& op = std::get<Op>(statements[ranges[i].op].action);
    auto here = std::find_if(blocks.begin(), blocks.end(),
                             [&](const BlockWords& each) { return each.block == block; });
    if (here == blocks.end()) here = blocks.insert(here, BlockWords{block, {}});
    here->times = std::max(here->times, times[i]);
    std::vector<std::string>& names = here->operators;
    const std::string name = without_namespace(op.name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return blocks;
}

std::string in_words(const std::vector<BlockWords>& blocks, const Mix& mix, const Survey& survey) {
  std::vector<std::pair<std::string, std::vector<Range>>> families;  // by recomputed operators
  for (const BlockWords& each : blocks) {
    const std::string operators = joined(each.operators);
    auto family = std::find_if(families.begin(), families.end(),
                               [&](const auto& known) { return known.first == operators; });
    if (family == families.end()) family = families.insert(family, {operators, {}});
    add(family->second, each.block.empty() ? "the forward" : each.block,
        each.times > 1 ? " (up to " + std::to_string(each.times) + " times)" : "");
  }
  std::string text;
  for (const auto& [operators, ranges] : families) {
    std::vector<std::string> where;
    for (const Range& range : ranges) where.push_back(to_text(range));
    text += (text.empty() ? "recompute the operators " : "; the operators ") + operators + " of " +
            joined(where);
  }
  return and_moves(std::move(text), mix, survey);
}

}  // namespace ferry::plan
