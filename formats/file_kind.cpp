#include "formats/file_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <optional>

#include "formats/error.h"
#include "formats/json_scan.h"

namespace ferry {
namespace {

constexpr std::size_t kBeginning = std::size_t{1} << 16;

struct Words {
  std::string_view kind;
  std::string_view read_by;
};

// In the order of FileKind.
constexpr std::array<Words, kFileKinds> kWords = {{
    {"a file that Ferry does not know", "no command reads it"},
    {"empty", "was it written to its end?"},
    {"compressed", "unpack it first (gunzip)"},
    {"a zip archive (as torch.save writes)", "no command reads it"},
    {"a web page", "a browser shows it"},
    {"a pickle (such as a memory snapshot)", "`ferry explain` and `ferry replay` read snapshots"},
    {"a profiler's trace (Chrome's JSON)",
     "`ferry plan --times` and `ferry simulate --times` read it, ui.perfetto.dev shows it"},
    {"a program", "`ferry plan`, `ferry simulate` and `ferry replay` read it"},
    {"a stream log", "`ferry check` and `ferry explain` read it"},
    {"a hazard", "`ferry check` reads it"},
    {"a plan",
     "`ferry simulate --plan`, `ferry replay --plan`, `ferry train --plan` and Python's "
     "ferry.execute "
     "read it"},
    {"a pipeline's plan", "`ferry train --stages` reads it"},
    {"a decision log", "`ferry replay --decisions` reads it"},
    {"a table of kernel times", "`ferry plan --times` and `ferry simulate --times` read it"},
    {"the state of a training", "`ferry train --resume` reads it"},
    {"the file of a campaign", "`ferry verify --resume` reads it"},
    {"a sweep's results", "`ferry sweep --from` reads them"},
    {"a TOML file",
     "`--card` reads a card, `ferry plan` and `ferry simulate` a scenario, `ferry sweep` a "
     "sweep"},
}};

const Words& words_of(FileKind kind) { return kWords[static_cast<std::size_t>(kind)]; }

// Returns the kind that the value of the key "ferry" names.
std::optional<FileKind> named(std::string_view name) {
  constexpr std::pair<std::string_view, FileKind> kNames[] = {
      {"program", FileKind::kProgram},     {"hazard", FileKind::kHazard},
      {"plan", FileKind::kPlan},           {"pipeline plan", FileKind::kPipelinePlan},
      {"decisions", FileKind::kDecisions}, {"kernel times", FileKind::kKernelTimes},
      {"training", FileKind::kTraining},
  };
  for (const auto& [text, kind] : kNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

// Finds the kind by the keys of the first object, as far as the beginning contains them.
FileKind kind_of_object(std::string_view text) {
  FileKind kind = FileKind::kOther;
  try {
    JsonScan scan(text);
    scan.open('{');
    std::string_view key;
    bool ferry = false;
    while (scan.next_key(key)) {
      // The values of these keys may be longer than the beginning, so they are not read.
      if (key == "traceEvents" || key == "deviceProperties") return FileKind::kProfile;
      if (key == "campaign") return FileKind::kCampaign;
      const std::string name(key);
      const JsonValue value = scan.value();
      if (name == "ferry" && value.kind == JsonValue::Kind::kText) {
        if (const auto known = named(value.text)) return *known;
        ferry = true;
      }
      if (ferry && name == "budget") return FileKind::kResults;
      if (name == "schemaVersion") kind = FileKind::kProfile;
      if (name == "ph") return FileKind::kProfile;
      if (name == "op" && kind == FileKind::kOther) kind = FileKind::kLog;
      // A statement of a program that lacks its header has outputs.
      if (name == "out" && kind == FileKind::kLog) return FileKind::kOther;
    }
  } catch (const JsonError&) {  // the beginning ends inside a value, or is not JSON
  }
  return kind;
}

FileKind kind_of_text(std::string_view text) {
  if (text[0] == '{') return kind_of_object(text);
  if (text[0] == '[') {
    const std::size_t first = text.find_first_not_of(" \t\r\n", 1);
    const bool object = first != std::string_view::npos && text[first] == '{';
    // A list of objects is a list of events. A table of a TOML file has a name after the bracket.
    if (object)
      return kind_of_object(text.substr(first)) == FileKind::kProfile ? FileKind::kProfile
                                                                      : FileKind::kOther;
  }
  if (text[0] == '<') return FileKind::kPage;
  // The first line that is not empty or a comment is a table's name, or a key and its value.
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    constexpr std::string_view kKey =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.\"";
    const std::size_t end = line.find_first_not_of(kKey, begin);
    const std::size_t sign =
        end == std::string_view::npos ? end : line.find_first_not_of(" \t", end);
    const bool key = end != begin && sign != std::string_view::npos && line[sign] == '=' &&
                     line.substr(sign, 2) != "==";
    return key ? FileKind::kToml : FileKind::kOther;
  }
  return FileKind::kOther;
}

}  // namespace

FileKind kind_of(std::string_view beginning) {
  using namespace std::string_view_literals;
  const auto starts = [beginning](std::string_view bytes) { return beginning.starts_with(bytes); };
  if (starts("\x1f\x8b"sv) || starts("BZh"sv) ||
      starts("\xfd"
             "7zXZ"sv) ||
      starts("\x28\xb5\x2f\xfd"sv)) {
    return FileKind::kCompressed;
  }
  if (starts("PK\x03\x04"sv)) return FileKind::kZip;
  if (beginning.size() >= 2 && starts("\x80"sv) && beginning[1] >= 2 && beginning[1] <= 5) {
    return FileKind::kPickle;
  }
  if (starts("\xef\xbb\xbf"sv)) beginning.remove_prefix(3);
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return FileKind::kEmpty;
  return kind_of_text(beginning.substr(first));
}

std::string_view in_words(FileKind kind) { return words_of(kind).kind; }
std::string_view read_by(FileKind kind) { return words_of(kind).read_by; }

void refuse_other_kinds(std::string_view text, const std::string& file,
                        std::initializer_list<FileKind> wanted) {
  const FileKind kind = kind_of(text.substr(0, kBeginning));
  if (kind == FileKind::kOther || std::find(wanted.begin(), wanted.end(), kind) != wanted.end()) {
    return;
  }
  const auto& [what, reader] = words_of(kind);
  throw InputError(file, 0,
                   "expected " + std::string(in_words(*wanted.begin())) + ", and this is " +
                       std::string(what) + ": " + std::string(reader));
}

void refuse_other_kinds(const std::filesystem::path& path, std::initializer_list<FileKind> wanted) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  std::ifstream in(path, std::ios::binary);
  std::string beginning(kBeginning, '\0');
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) return;  // the reader will report the failure
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  refuse_other_kinds(beginning, path.string(), wanted);
}

}  // namespace ferry
