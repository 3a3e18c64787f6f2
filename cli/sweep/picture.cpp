#include "cli/sweep/picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "scenarios/units.h"

namespace ferry::cli {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2733; --soft: #8a97a6; --grid: #d9dfe6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #8592a0; --grid: #37424e; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 780px; padding: 0 1em;
       color: var(--ink); }
svg { width: 100%; height: auto; } text { fill: var(--ink); font-size: 12px; }
.grid { stroke: var(--grid); } .front { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.beaten { fill-opacity: 0.25; } li { list-style: none; } ul { padding: 0; }
.c0 { fill: #2f7ed8; } .c1 { fill: #d9662f; } .c2 { fill: #3a9a5b; } .c3 { fill: #9b59b6; }
.c4 { fill: #b8920a; } .c5 { fill: #c2396b; } .c6 { fill: #2a9fa8; } .c7 { fill: #7a6a58; }
)";
constexpr std::size_t kColours = 8;
constexpr int kLeft = 76, kRight = 744, kTop = 12, kBottom = 352, kTicks = 4;

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

// Maps values from 0 to the largest one to one side of the picture.
class Axis {
 public:
  Axis(long long most, int from, int to) : most_(std::max(most, 1LL)), from_(from), to_(to) {}
  int at(long long value) const {
    const double share = static_cast<double>(value) / static_cast<double>(most_);
    return from_ + static_cast<int>(share * (to_ - from_));
  }
  long long tick(int i) const { return most_ / kTicks * i; }

 private:
  long long most_;
  int from_, to_;
};

class Picture {
 public:
  explicit Picture(const Front& front)
      : front_(front),
        memory_(most(&Way::bytes), kLeft, kRight),
        time_(most(&Way::step_ns), kBottom, kTop) {
    for (const auto* ways : {&front.ways, &front.beaten}) {
      for (const Way& way : *ways) cards_.push_back(way.hardware);
    }
    std::sort(cards_.begin(), cards_.end());
    cards_.erase(std::unique(cards_.begin(), cards_.end()), cards_.end());
  }

  std::string svg() const {
    std::string text = "<svg viewBox=\"0 0 780 400\" role=\"img\">\n";
    for (int i = 0; i <= kTicks; ++i) {
      const int x = memory_.at(memory_.tick(i)), y = time_.at(time_.tick(i));
      text += line(x, kTop, x, kBottom) + line(kLeft, y, kRight, y);
      text += label(x, kBottom + 18, "middle", format_bytes(memory_.tick(i)));
      text += label(kLeft - 6, y + 4, "end", format_time(time_.tick(i)));
    }
    text += label((kLeft + kRight) / 2, kBottom + 40, "middle", "reserved on the device");
    text += "<polyline class=\"front\" points=\"";
    for (const Way& way : front_.by_time()) {
      text += fmt::format("{},{} ", memory_.at(way.bytes), time_.at(way.step_ns));
    }
    text += "\"/>\n";
    for (const Way& way : front_.beaten) text += point(way, 3, " beaten");
    for (const Way& way : front_.ways) text += point(way, 5, "");
    return text + "</svg>\n";
  }

  std::string legend() const {
    std::string text = "<ul>\n";
    for (const std::string& card : cards_) {
      text += fmt::format(
          "<li><svg viewBox=\"0 0 10 10\" style=\"width:.8em\"><circle class=\"c{}\" cx=\"5\" "
          "cy=\"5\" r=\"5\"/></svg> {}</li>\n",
          colour(card), escaped(card));
    }
    return text + "</ul>\n";
  }

 private:
  long long most(long long Way::*figure) const {
    long long value = 0;
    for (const auto* ways : {&front_.ways, &front_.beaten}) {
      for (const Way& way : *ways) value = std::max(value, way.*figure);
    }
    return value;
  }
  std::size_t colour(const std::string& card) const {
    const auto found = std::lower_bound(cards_.begin(), cards_.end(), card);
    return static_cast<std::size_t>(found - cards_.begin()) % kColours;
  }
  static std::string line(int x, int y, int to_x, int to_y) {
    return fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", x, y,
                       to_x, to_y);
  }
  static std::string label(int x, int y, const char* anchor, const std::string& text) {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                       escaped(text));
  }
  std::string point(const Way& way, int radius, const char* kind) const {
    return fmt::format(
        "<circle class=\"c{}{}\" cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{}, budget {}, {}: {}, "
        "{}</title></circle>\n",
        colour(way.hardware), kind, memory_.at(way.bytes), time_.at(way.step_ns), radius,
        escaped(way.hardware), escaped(way.budget), escaped(way.policy), format_bytes(way.bytes),
        format_time(way.step_ns));
  }

  const Front& front_;
  std::vector<std::string> cards_;
  const Axis memory_, time_;
};

}  // namespace

std::string picture_of(const std::string& sweep, const std::vector<Front>& fronts) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n<h1>{0}</h1>\n<p>Each point is a way to run a step that fits. The line "
      "joins those that no other beats.</p>\n",
      escaped(sweep), kStyle);
  for (const Front& front : fronts) {
    text += fmt::format("<h2>{}</h2>\n", escaped(front.name));
    if (front.fit() == 0) {
      text += "<p>Nothing fits.</p>\n";
      continue;
    }
    const Picture picture(front);
    text += picture.svg() + picture.legend();
  }
  return text + "</html>\n";
}

}  // namespace ferry::cli
