#include "sim/peak/bar_table.h"

#include <algorithm>
#include <span>

#include "scenarios/units.h"

namespace ferry::peak {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kBar = 20;

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

// Returns at least one mark for a part that is not empty.
std::string bar(std::int64_t part, std::int64_t whole) {
  const auto marks =
      static_cast<std::int64_t>((static_cast<Wide>(part) * kBar + whole / 2) / whole);
  return std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(marks, part > 0, kBar)),
                     '#');
}

std::vector<std::size_t> widths_of(const BarTable& table, std::span<const BarLine> lines) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.titles.size(); ++i) {
    widths.push_back(table.titles[i].size());
    for (const BarLine& line : lines) {
      if (i < line.cells.size()) widths[i] = std::max(widths[i], line.cells[i].size());
    }
  }
  return widths;
}

std::string columns(const std::string& bytes, const std::string& share, const std::string& bar,
                    const std::string& parts) {
  return "  " + right(bytes, 9) + "  " + right(share, 7) + "  " + left(bar, kBar) + "  " +
         right(parts, 7);
}

}  // namespace

std::string share(std::int64_t part, std::int64_t whole) {
  const auto permille =
      static_cast<std::int64_t>((static_cast<Wide>(part) * 1000 + whole / 2) / whole);
  return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

std::string to_text(const BarTable& table, std::vector<BarLine> lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const BarLine& a, const BarLine& b) { return a.bytes > b.bytes; });
  if (lines.size() > table.lines_most) {
    const std::size_t shown = table.lines_most > 0 ? table.lines_most - 1 : 0;
    BarLine rest{0, 0, {}, "in " + std::to_string(lines.size() - shown) + " others"};
    for (const BarLine& line : std::span(lines).subspan(shown)) {
      rest.bytes += line.bytes;
      rest.parts += line.parts;
    }
    lines.resize(shown);
    lines.push_back(std::move(rest));
  }
  const std::vector<std::size_t> widths = widths_of(table, lines);
  std::string text = columns("bytes", "share", "", table.parts_title);
  for (std::size_t i = 0; i < widths.size(); ++i) text += "  " + left(table.titles[i], widths[i]);
  text += "  " + table.text_title + "\n";
  for (const BarLine& line : lines) {
    text += columns(format_bytes(line.bytes), share(line.bytes, table.whole_bytes),
                    bar(line.bytes, table.whole_bytes), std::to_string(line.parts));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += "  " + left(i < line.cells.size() ? line.cells[i] : "", widths[i]);
    }
    text += "  " + line.text + "\n";
  }
  return text;
}

}  // namespace ferry::peak
