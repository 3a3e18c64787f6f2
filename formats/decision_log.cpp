#include "formats/decision_log.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "formats/atomic_file.h"
#include "formats/file_kind.h"
#include "formats/json_fields.h"
#include "formats/plan_options.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

constexpr std::array<std::string_view, 7> kDecisionNames = {
    "pack", "evict", "prefetch", "unpack", "release", "return", "recompute"};
static_assert(kDecisionNames.size() == static_cast<std::size_t>(DecisionKind::kRecompute) + 1);

NamedOptions read_options(const Json& json, const std::string& file) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  Fields options(json, file, 1);
  NamedOptions named;
  for (const auto& item : json.items()) {
    named.emplace_back(item.key(), options.integer(item.key(), kLeast));
  }
  for (const auto& option : plan_options(CoreOptions())) {
    if (!options.has(option.first)) options.expected(option.first, "an option of the offloader");
  }
  return named;
}

// Returns the plan's choice for each pack. The list is never empty: an empty list would let all
// packs move.
std::vector<bool> read_moves(Fields& header) {
  const std::vector<std::int64_t> moves = header.integers("moves");
  for (std::size_t i = 1; i < moves.size(); ++i) {
    if (moves[i] <= moves[i - 1]) header.expected("moves", "numbers that ascend");
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  if (!moves.empty() && moves.back() > kMost) header.expected("moves", "ordinals of packs");
  std::vector<bool> offload(moves.empty() ? 1 : static_cast<std::size_t>(moves.back()) + 1);
  for (const std::int64_t pack : moves) offload[static_cast<std::size_t>(pack)] = true;
  return offload;
}

CoreOptions read_header(const Json& json, const std::string& file) {
  Fields header(json, file, 1);
  if (header.text("ferry") != "decisions") header.expected("ferry", "\"decisions\"");
  if (header.integer("schema") != 1) header.expected("schema", "1");
  if (!header.at("options").is_object()) header.expected("options", "an object");
  const NamedOptions named = read_options(header.at("options"), file);
  CoreOptions options;
  try {
    options = named_options(named);
  } catch (const std::invalid_argument& error) {
    header.fail(error.what());
  }
  if (header.has("moves")) options.offload = read_moves(header);
  return options;
}

Decision read_decision(const Json& json, const std::string& file, std::uint64_t line) {
  Fields fields(json, file, line);
  const std::string kind = fields.text("decision");
  const auto known = std::find(kDecisionNames.begin(), kDecisionNames.end(), kind);
  if (known == kDecisionNames.end()) {
    fields.expected("decision", "pack, evict, prefetch, unpack, release, return or recompute");
  }
  const Decision decision{static_cast<DecisionKind>(known - kDecisionNames.begin()),
                          static_cast<std::uint64_t>(fields.integer("run")),
                          static_cast<std::uint64_t>(fields.integer("pack")),
                          fields.integer("bytes")};
  return decision;
}

}  // namespace

std::string_view name(DecisionKind kind) { return kDecisionNames[static_cast<std::size_t>(kind)]; }

std::string decision_header(const CoreOptions& options) {
  std::string text = "{\"ferry\":\"decisions\",\"schema\":1,\"options\":{";
  bool first = true;
  for (const auto& [key, value] : plan_options(options)) {
    text += (first ? "" : ",") + json_text(key) + ":" + std::to_string(value);
    first = false;
  }
  text += "}";
  if (!options.offload.empty()) {
    std::vector<std::int64_t> moves;
    for (std::size_t i = 0; i < options.offload.size(); ++i) {
      if (options.offload[i]) moves.push_back(static_cast<std::int64_t>(i));
    }
    text += ",\"moves\":" + json_list(moves);
  }
  return text + "}\n";
}

std::string decision_line(const Decision& decision) {
  return "{\"decision\":\"" + std::string(name(decision.kind)) +
         "\",\"run\":" + std::to_string(decision.run) +
         ",\"pack\":" + std::to_string(decision.pack) +
         ",\"bytes\":" + std::to_string(decision.bytes) + "}\n";
}

void write_decision_log(const std::filesystem::path& path, const DecisionLog& log) {
  AtomicFile file(path);
  file.write(decision_header(log.options));
  for (const Decision& decision : log.decisions) file.write(decision_line(decision));
  file.commit();
}

DecisionLog parse_decision_log(std::string_view text, const std::string& file) {
  DecisionLog log;
  bool header = true;
  for (std::uint64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (header) {
      log.options = read_header(parse_json(content, file, line), file);
      header = false;
    } else if (!content.empty()) {
      log.decisions.push_back(read_decision(parse_json(content, file, line), file, line));
      log.lines.push_back(line);
    }
  }
  if (header) throw InputError(file, 1, "expected the header of a decision log");
  return log;
}

DecisionLog read_decision_log(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  refuse_other_kinds(text, path.string(), {FileKind::kDecisions});
  return parse_decision_log(text, path.string());
}

}  // namespace ferry
