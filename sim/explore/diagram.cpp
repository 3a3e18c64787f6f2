// Implements diagram.h: chooses the rows, lays them out, and wraps the text below them.
#include "sim/explore/diagram.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::explore {
namespace {

constexpr std::size_t kWidth = 100, kLabel = 9, kRows = 10, kColumns = 4;

// Counts characters, not bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Cuts or pads the text to exactly so many characters.
std::string fit(std::string text, std::size_t characters) {
  if (width(text) > characters) {
    while (width(text) >= characters) {
      while ((text.back() & 0xc0) == 0x80) text.pop_back();
      text.pop_back();
    }
    text += "…";
  }
  return text.append(characters - width(text), ' ');
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Wraps the text into at most `most` lines. All but the first are indented.
std::string wrapped(const std::string& text, std::size_t most) {
  std::string lines, line;
  std::size_t count = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && width(line) + 1 + width(word) > kWidth) {
      if (count++ == most) return lines + trimmed(fit(line + " …", kWidth));
      lines += line + "\n";
      line = "   ";
    }
    line += line.empty() ? fit(word, std::min(kWidth, width(word)))
                         : " " + fit(word, std::min(kWidth - 4, width(word)));
    at = end + 1;
  }
  return lines + line + "\n";
}

struct Column {
  bool host = false;
  std::uint32_t id = 0;
  auto operator<=>(const Column&) const = default;
};

struct Row {
  std::size_t place = 0;  // in the recording
  Column column;
};

bool meet(const Range& a, const Range& b) { return a.address < b.end() && b.address < a.end(); }

class Diagram {
 public:
  Diagram(const Explorer& explorer, const check::Hazard& hazard, const Witness& witness,
          const check::AccessNames& names)
      : explorer_(explorer), h_(hazard), w_(witness), names_(names) {}

  std::string text() {
    pick();
    cell_ = std::min<std::size_t>((kWidth - kLabel) / columns_.size(), 45);
    std::string text = wrapped(describe(h_), 2) + "\n" + heads();
    bool trail = false;
    for (const Row& row : rows_) {
      if (row.place == later_.place && row.column == later_.column) {
        text += missing_edge();
        trail = false;
      }
      text += line(row, trail);
      trail |= row.place == earlier_.place && row.column == earlier_.column;
    }
    return text + "\n" + below();
  }

 private:
  const Recording& recording() const { return explorer_.recording(); }
  const OpGraph& graph() const { return explorer_.graph(); }

  Row row_of(ActionId action) const {
    const StreamOp op = recording()[graph()[action].op];
    const bool host = graph()[action].by_host;
    return {graph()[action].op,
            {host, static_cast<std::uint32_t>(host ? std::uint32_t(op.thread)
                                                   : std::uint32_t(op.stream))}};
  }

  void add(const Row& row) {
    const auto same = [&](const Row& other) {
      return other.place == row.place && other.column == row.column;
    };
    if (rows_.size() == kRows || std::any_of(rows_.begin(), rows_.end(), same)) return;
    if (std::find(columns_.begin(), columns_.end(), row.column) == columns_.end()) {
      if (columns_.size() == kColumns) return;
      columns_.push_back(row.column);
    }
    rows_.push_back(row);
  }
  void add(ActionId action) {
    if (action != kNoAction) add(row_of(action));
  }

  // Picks the most useful rows while there is room, and sorts them in issue order.
  void pick() {
    const ActionId earlier = graph().find(h_.earlier.op, h_.earlier.by_host);
    const ActionId later = graph().find(h_.later.op, h_.later.by_host);
    earlier_ = row_of(earlier);
    later_ = row_of(later);
    for (const ActionId action :
         {earlier, later, w_.difference.action, w_.met.expected, w_.met.actual}) {
      add(action);
    }
    add_memory();
    add_near_miss();
    std::sort(columns_.begin(), columns_.end());
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::tuple(a.place, !a.column.host) < std::tuple(b.place, !b.column.host);
    });
  }

  // Adds the last three allocations, frees and recorded uses of the bytes between the accesses.
  void add_memory() {
    std::vector<Row> found;
    for (std::size_t i = earlier_.place; i < later_.place; ++i) {
      const StreamOp op = recording()[i];
      const bool memory = op.kind == StreamOpKind::kAlloc || op.kind == StreamOpKind::kFree ||
                          op.kind == StreamOpKind::kRecordUse;
      if (memory && meet(op.range, h_.range)) {
        found.push_back({i, {true, static_cast<std::uint32_t>(op.thread)}});
      }
    }
    for (std::size_t i = found.size(); i-- > 0 && found.size() - i <= 3;) add(found[i]);
  }

  // Adds the last wait of the later access's stream for an event of the earlier access's stream.
  // This wait came too early, or its record did.
  void add_near_miss() {
    if (h_.earlier.by_host || h_.later.by_host) return;
    for (std::size_t i = later_.place; i-- > 0;) {
      const StreamOp wait = recording()[i];
      if (wait.kind != StreamOpKind::kWait || wait.stream != h_.later.stream) continue;
      for (std::size_t j = i; j-- > 0;) {
        const StreamOp record = recording()[j];
        if (record.kind != StreamOpKind::kRecord || record.event != wait.event) continue;
        if (record.stream != h_.earlier.stream) break;
        add(Row{j, {false, static_cast<std::uint32_t>(record.stream)}});
        return add(Row{i, {false, static_cast<std::uint32_t>(wait.stream)}});
      }
    }
  }

  std::size_t index(const Column& column) const {
    return static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) -
                                    columns_.begin());
  }

  std::string heads() const {
    std::string line(kLabel, ' ');
    for (const Column& column : columns_) {
      check::HazardAccess access;
      access.by_host = column.host;
      access.stream = StreamId{column.id};
      access.thread = HostThread{column.id};
      line += fit(names_.place(access), cell_ - 1) + " ";
    }
    return trimmed(line);
  }

  std::string cell(const Row& row) const {
    const StreamOp op = recording()[row.place];
    std::string text;
    if (row.place == earlier_.place && row.column == earlier_.column) text = "A ";
    if (row.place == later_.place && row.column == later_.column) text = "B ";
    if (op.step != Step::kUser) {
      text.append("`").append(name(op.step)).append("`");
    } else {
      text.append(op.name.empty() ? check::name(op.kind) : op.name);
    }
    if (op.kind == StreamOpKind::kRecord || op.kind == StreamOpKind::kWait) {
      text += " (event " + std::to_string(static_cast<std::uint32_t>(op.event)) + ")";
    }
    return text;
  }

  std::string line(const Row& row, bool trail) const {
    check::HazardAccess access;
    access.op = recording().number(row.place);
    std::string line = fit(names_.op(access), kLabel);
    for (const Column& column : columns_) {
      std::string text = column == row.column ? cell(row) : "";
      if (text.empty() && trail && column == earlier_.column) text = "╎";
      line += fit(std::move(text), cell_ - 1) + " ";
    }
    return trimmed(line);
  }

  std::string missing_edge() const {
    const std::size_t from = index(earlier_.column), to = index(later_.column);
    const std::size_t left = std::min(from, to), cells = std::max(from, to) - left;
    const std::string word = " no edge ";
    std::string line(kLabel + left * cell_, ' ');
    const std::size_t dashes = cells * cell_ - 1 - word.size();
    const auto dash = [&](std::size_t count) {
      for (; count > 0; --count) line += "╌";
    };
    line += from < to ? "╰" : "◀";
    dash(dashes / 2);
    line += word;
    dash(dashes - dashes / 2);
    return line + (from < to ? "▶" : "╯") + "\n";
  }

  std::string below() const {
    std::string order = "schedule " + to_string(graph(), w_.schedule);
    const ActionId earlier = graph().find(h_.earlier.op, h_.earlier.by_host);
    const ActionId later = graph().find(h_.later.op, h_.later.by_host);
    if (w_.schedule == Schedule{{earlier, later}}) order += ": A is late, and runs after B";
    return wrapped(order, 3) + wrapped("seen in it: " + to_string(explorer_, w_), 3) +
           wrapped("to order them: " + advice(h_, names_), 3);
  }

  const Explorer& explorer_;
  const check::Hazard& h_;
  const Witness& w_;
  const check::AccessNames& names_;
  Row earlier_, later_;
  std::vector<Row> rows_;
  std::vector<Column> columns_;
  std::size_t cell_ = 0;
};

}  // namespace

std::string diagram(const Explorer& explorer, const check::Hazard& hazard, const Witness& witness,
                    const check::AccessNames& names) {
  return Diagram(explorer, hazard, witness, names).text();
}

}  // namespace ferry::explore
