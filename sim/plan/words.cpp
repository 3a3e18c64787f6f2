#include "sim/plan/words.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace ferry::plan {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A segment's name, cut at its first number: layers.7.mlp.
struct Numbered {
  std::string before;
  std::string number;
  std::string after;  // and how much is recomputed

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

// Segments that follow one another in number, and are recomputed alike.
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

std::size_t moved_storages(const Mix& mix, const Survey& survey) {
  std::set<std::uint64_t> groups;
  for (std::size_t p = 0; p < survey.packs.size(); ++p) {
    if (mix.packs[p] == PlanChoice::kOffload) groups.insert(survey.packs[p].group);
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    for (std::size_t i = 0; mix.recompute[s] && i < mix.input_moves[s].size(); ++i) {
      if (mix.input_moves[s][i]) groups.insert(survey.segments[s].inputs[i].group);
    }
  }
  return groups.size();
}

}  // namespace

std::string in_words(const Mix& mix, const std::vector<std::string>& names, const Survey& survey) {
  std::string text = recomputed(mix, names, survey);
  const std::size_t moved = moved_storages(mix, survey);
  if (moved > 0) {
    text += (text.empty() ? "offload " : "; offload ") + std::to_string(moved) +
            (moved == 1 ? " storage" : " storages");
  }
  return text.empty() ? text : text + "; keep the rest";
}

}  // namespace ferry::plan
