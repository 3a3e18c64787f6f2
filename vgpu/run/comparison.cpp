#include "vgpu/run/comparison.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <fstream>
#include <optional>

#include "formats/printable.h"
#include "scenarios/units.h"
#include "vgpu/run/verdict.h"

namespace ferry::vgpu {
namespace {

constexpr std::size_t kTailLines = 12;

using Columns = std::array<std::string, 11>;
constexpr std::size_t kFirstNumber = 3;  // the columns before it are text
const Columns kTitles = {"card", "policy", "allocator", "seed", "allocated", "reserved",
                         "host", "step",   "slowdown",  "fits", "races"};

std::string name(const Setting& setting) {
  std::string text = setting.card->hardware.name + ", " + setting.policy;
  if (!setting.allocator.empty()) text += ", " + setting.allocator;
  if (setting.seed > 0) text += ", seed " + std::to_string(setting.seed);
  return printable(text);
}

void print_tail(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::deque<std::string> tail;
  for (std::string line; std::getline(in, line);) {
    tail.push_back(std::move(line));
    if (tail.size() > kTailLines) tail.pop_front();
  }
  for (const std::string& line : tail) std::fprintf(stderr, "  %s\n", printable(line).c_str());
}

void tell(const Row& row, const std::filesystem::path& output) {
  if (row.failed()) {
    std::fprintf(stderr, "ferry run: %s: the script ended with %d; the end of what it printed:\n",
                 name(row.setting).c_str(), row.run.ending.status);
    print_tail(output);
  } else if (!row.run.report.violations.empty() || !row.run.report.unjudged.empty()) {
    std::fprintf(stderr, "ferry run: %s:\n", name(row.setting).c_str());
    print(row.run.report, "");
  }
}

// The time of a step without a policy, with which `slowdown` compares: that of the row with the
// same card, allocator and seed.
std::optional<std::int64_t> keep_ns(const std::vector<Row>& rows, const Setting& setting) {
  for (const Row& row : rows) {
    if (row.setting.card != setting.card || row.setting.allocator != setting.allocator) continue;
    if (row.setting.seed != setting.seed) continue;
    if (row.setting.policy != "keep" || row.run.ending.status != kOk || !row.run.summary) continue;
    if (const auto step = row.run.summary->step()) return step->step_ns;
  }
  return std::nullopt;
}

std::string permille(std::int64_t part, std::int64_t of) {
  const std::int64_t thousandths = (1000 * part + of / 2) / of;
  std::string rest = std::to_string(thousandths % 1000);
  rest.insert(0, 3 - rest.size(), '0');
  return std::to_string(thousandths / 1000) + "." + rest;
}

Columns columns_of(const Row& row, const std::vector<Row>& rows) {
  Columns columns;
  columns.fill("-");
  columns[0] = printable(row.setting.card->hardware.name);
  columns[1] = printable(row.setting.policy);
  if (!row.setting.allocator.empty()) columns[2] = printable(row.setting.allocator);
  columns[3] = std::to_string(row.setting.seed);
  columns[9] = row.out_of_memory() ? "no" : row.failed() ? "error" : "yes";
  if (!row.run.summary) return columns;
  const Summary& summary = *row.run.summary;
  const DeviceMemory& memory = summary.devices.at(summary.fullest());
  columns[4] = format_bytes(memory.allocated_bytes);
  columns[5] = format_bytes(memory.reserved_bytes);
  columns[6] = format_bytes(summary.pinned_bytes);
  columns[10] = std::to_string(row.run.report.violations.size());
  const auto step = summary.step();
  if (!step || step->step_ns <= 0 || row.run.ending.status != kOk) return columns;
  columns[7] = format_time(step->step_ns);
  const auto keep = keep_ns(rows, row.setting);
  if (keep && *keep > 0) columns[8] = permille(step->step_ns, *keep);
  return columns;
}

}  // namespace

bool Row::out_of_memory() const {
  return run.ending.status != kOk && run.summary && !run.summary->out_of_memory.empty();
}

bool Row::failed() const { return run.ending.status != kOk && !out_of_memory(); }

std::vector<Row> compare(const Options& options, const std::filesystem::path& libraries) {
  std::vector<Row> rows;
  const std::vector<Setting> settings = options.settings();
  for (const Setting& setting : settings) {
    std::fprintf(stderr, "ferry run: %zu of %zu: %s\n", rows.size() + 1, settings.size(),
                 name(setting).c_str());
    const RunFile output("");
    rows.push_back({setting, run_once(options, setting, libraries, output.path())});
    tell(rows.back(), output.path());
    if (rows.back().run.ending.status >= kStoppedBase) break;  // Ctrl-C ends all of them
  }
  return rows;
}

std::string to_table(const std::vector<Row>& rows) {
  std::vector<Columns> lines{kTitles};
  for (const Row& row : rows) lines.push_back(columns_of(row, rows));
  std::string text;
  std::array<std::size_t, std::tuple_size_v<Columns>> widths{};
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (const Columns& line : lines)
      widths[column] = std::max(widths[column], line[column].size());
  }
  const bool has_allocators =
      std::ranges::any_of(rows, [](const Row& row) { return !row.setting.allocator.empty(); });
  const bool has_seeds =
      std::ranges::any_of(rows, [](const Row& row) { return row.setting.seed > 0; });
  for (const Columns& line : lines) {
    std::string shown;
    for (std::size_t column = 0; column < line.size(); ++column) {
      if (column == 2 && !has_allocators) continue;
      if (column == 3 && !has_seeds) continue;
      const std::string blanks(widths[column] - line[column].size(), ' ');
      if (!shown.empty()) shown += "  ";
      shown += column < kFirstNumber ? line[column] + blanks : blanks + line[column];
    }
    text += shown + "\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json json{{"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json each{
        {"card", row.setting.card->hardware.name}, {"policy", row.setting.policy},
        {"allocator", row.setting.allocator},      {"seed", row.setting.seed},
        {"exit_code", row.run.ending.status},      {"fits", row.run.ending.status == kOk}};
    each.update(to_json(row.run));
    json["rows"].push_back(std::move(each));
  }
  return json;
}

int exit_code(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.failed()) return row.run.ending.status;
  }
  const bool races =
      std::ranges::any_of(rows, [](const Row& row) { return !row.run.report.violations.empty(); });
  if (races) return kViolated;
  const bool short_of =
      std::ranges::any_of(rows, [](const Row& row) { return row.run.falls_short(); });
  return short_of ? kNotJudged : kOk;
}

std::string verdict_of(const std::vector<Row>& rows) {
  std::size_t judged = 0;
  std::size_t violations = 0;
  std::int64_t views = 0;
  std::int64_t parts = 0;
  std::int64_t asking = 0;
  for (const Row& row : rows) {
    judged += row.run.judged() == Judged::kAll ? 1 : 0;
    violations += row.run.report.violations.size();
    views += static_cast<std::int64_t>(row.run.report.unjudged_views);
    parts += row.run.ending.parts_unjudged;
    asking += row.run.ending.asking;
  }
  const std::string unjudged = unjudged_text(views, parts, asking);
  return std::to_string(judged) + " of " + std::to_string(rows.size()) +
         " runs were judged in whole: " + std::to_string(violations) + " violations" +
         (unjudged.empty() ? "" : "; not judged: ") + unjudged;
}

}  // namespace ferry::vgpu
