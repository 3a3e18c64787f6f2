#include "verify/campaign/replay_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "formats/error.h"
#include "verify/programs/codec.h"

namespace ferry::verify {
namespace {

constexpr char kBetween = '~';

[[noreturn]] void refuse(const std::string& what) {
  throw InputError("--replay", 0, what + ": expected WHO~TRIAL[~CHOICES], as a report printed it");
}

std::string one_word(std::string_view name) {
  std::string word;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == ':') {
      word.push_back('.');
      ++i;  // skip the space after the colon
    } else {
      word.push_back(name[i] == ' ' ? '-' : name[i]);
    }
  }
  return word;
}

template <class Number>
Number number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse(std::string("'").append(text).append("' is not a number"));
  }
  return number;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<choices::Deviation> parse_deviations(std::string_view text) {
  std::vector<choices::Deviation> found;
  if (text.empty()) return found;
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) refuse("a choice is PLACE:ANSWER");
    found.push_back({number_of<std::uint64_t>(pair[0]), number_of<std::uint32_t>(pair[1])});
    if (found.size() > 1 && found[found.size() - 2].at >= found.back().at) {
      refuse("choices come in the order of their places");
    }
  }
  return found;
}

bool has_own_programs(const RunSpec& spec) { return spec.scheduler && spec.scheduler->program; }

}  // namespace

std::string word_of(const Mutant& mutant) {
  if (mutant.name != no_mutant().name) return one_word(mutant.name);
  return mutant.part == MutantPart::kPipeline ? "pipeline" : "core";
}

std::optional<Mutant> find_mutant(std::string_view word) {
  if (word == "core") return no_mutant();
  if (word == "pipeline") return no_mutant(MutantPart::kPipeline);
  for (Mutant& mutant : all_mutants()) {
    if (word == mutant.name || word == one_word(mutant.name)) return std::move(mutant);
  }
  return std::nullopt;
}

std::string to_line(const RunSpec& spec) {
  std::string line = spec.scheduler ? spec.scheduler->name : word_of(spec.mutant);
  line.push_back(kBetween);
  if (has_own_programs(spec)) {
    line.append(std::to_string(spec.number));
  } else {
    line.append(spec.is_pipeline() ? encode(spec.pipeline) : encode(spec.trial));
  }
  if (!spec.deviations.empty()) line.push_back(kBetween);
  for (std::size_t i = 0; i < spec.deviations.size(); ++i) {
    const choices::Deviation& each = spec.deviations[i];
    if (i > 0) line.push_back(',');
    line.append(std::to_string(each.at)).append(":").append(std::to_string(each.answer));
  }
  return line;
}

RunSpec parse_line(std::string_view line, const Known& known) {
  const auto parts = split(line, kBetween);
  if (parts.size() < 2 || parts.size() > 3) refuse("it does not have two or three parts");
  RunSpec spec;
  if (known.find) spec.scheduler = known.find(parts[0]);
  if (!spec.scheduler) {
    const auto mutant = known.core ? find_mutant(parts[0]) : std::nullopt;
    if (!mutant) refuse(std::string("unknown name '").append(parts[0]).append("'"));
    spec.mutant = *mutant;
    spec.core = known.core;
  }
  if (has_own_programs(spec)) {
    spec.number = number_of<std::uint64_t>(parts[1]);
  } else if (spec.is_pipeline()) {
    spec.pipeline = decode_pipeline_trial(parts[1]);
  } else {
    spec.trial = decode_trial(parts[1]);
  }
  if (parts.size() > 2) spec.deviations = parse_deviations(parts[2]);
  return spec;
}

}  // namespace ferry::verify
