#include "scenarios/kernel_times.h"

#include <algorithm>

#include "formats/atomic_file.h"
#include "formats/json_fields.h"
#include "formats/layout.h"
#include "formats/limits.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

std::string layout_text(const std::optional<Layout>& layout) {
  return layout ? "{" + json_layout(*layout) + "}" : "null";
}

template <class Layouts>
std::string layouts_text(const Layouts& layouts) {
  std::string text = "[";
  for (const auto& layout : layouts) text += (text.size() > 1 ? "," : "") + layout_text(layout);
  return text + "]";
}

std::vector<std::optional<Layout>> read_layouts(Fields& line, std::string_view key) {
  const Json& list = line.at(key);
  if (!list.is_array()) line.expected(key, "a list of layouts");
  std::vector<std::optional<Layout>> layouts;
  for (const Json& each : list) {
    layouts.emplace_back();
    if (each.is_null()) continue;
    if (!each.is_object()) line.expected(key, "a list of layouts");
    Fields fields(each, line.file(), line.line());
    layouts.back() = fields.layout();
  }
  return layouts;
}

KernelTime read_time(const Json& json, const std::string& file, std::uint64_t number) {
  Fields line(json, file, number);
  KernelTime time;
  time.op.name = line.text("op");
  time.op.in = read_layouts(line, "in");
  for (const std::optional<Layout>& out : read_layouts(line, "out")) {
    if (!out) line.expected("out", "a list of layouts without null");
    time.op.out.push_back(*out);
  }
  time.op.writes = line.numbers_or_none("writes");
  time.op.flops = line.integer_or("flops", 0, limits::kFlops);
  time.op.read_bytes = line.integer_or("read", 0, limits::kBytes);
  time.op.written_bytes = line.integer_or("written", 0, limits::kBytes);
  time.ns = line.integer("ns", 1, limits::kTimeNs);
  time.least_ns = line.integer("least_ns", 1, time.ns);
  time.samples = line.integer("samples", 1);
  return time;
}

void add_time(KernelTime time, const std::string& file, std::uint64_t number, TimesTable& table) {
  try {
    time.op = canonical(std::move(time.op));
    std::string signature = signature_text(time.op);
    if (!table.times.try_emplace(std::move(signature), std::move(time)).second) {
      throw InputError(file, number, "expected each signature once, but a line above has this one");
    }
  } catch (const LayoutError& error) {  // an empty tensor whose strides would overflow
    throw InputError(file, number, "expected layouts of tensors: " + std::string(error.what()));
  }
}

void read_header(const Json& json, const std::string& file, TimesTable& table) {
  Fields header(json, file, 1);
  if (header.text("ferry") != "kernel times") header.expected("ferry", "\"kernel times\"");
  if (header.integer("schema") != 1) header.expected("schema", "1");
  table.device = header.text("device");
  if (header.has("about")) {
    Fields about = header.object("about");
    for (const auto& item : header.at("about").items()) {
      table.about.emplace_back(item.key(), about.text(item.key()));
    }
  }
}

void append_unless_0(std::string& text, std::string_view key, std::int64_t value) {
  if (value != 0) text.append(",\"").append(key).append("\":").append(std::to_string(value));
}

}  // namespace

std::string signature_text(const OpSignature& signature) {
  std::string text = "{\"op\":" + json_text(signature.name) +
                     ",\"in\":" + layouts_text(signature.in) +
                     ",\"out\":" + layouts_text(signature.out);
  if (!signature.writes.empty()) {
    text += ",\"writes\":" + json_list({signature.writes.begin(), signature.writes.end()});
  }
  append_unless_0(text, "flops", signature.flops);
  append_unless_0(text, "read", signature.read_bytes);
  append_unless_0(text, "written", signature.written_bytes);
  return text;
}

std::string to_text(const TimesTable& table) {
  std::string text =
      "{\"ferry\":\"kernel times\",\"schema\":1,\"device\":" + json_text(table.device);
  if (!table.about.empty()) {
    text += ",\"about\":{";
    for (std::size_t i = 0; i < table.about.size(); ++i) {
      text += (i > 0 ? "," : "") + json_text(table.about[i].first) + ":" +
              json_text(table.about[i].second);
    }
    text += "}";
  }
  text += "}\n";
  for (const auto& [signature, time] : table.times) {
    text += signature + ",\"ns\":" + std::to_string(time.ns) +
            ",\"least_ns\":" + std::to_string(time.least_ns) +
            ",\"samples\":" + std::to_string(time.samples) + "}\n";
  }
  return text;
}

void write_times(const std::filesystem::path& path, const TimesTable& table) {
  write_file(path, to_text(table));
}

TimesTable parse_times(std::string_view text, const std::string& file) {
  TimesTable table;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (number == 1) {
      read_header(parse_json(line, file, number), file, table);
    } else if (!line.empty()) {
      add_time(read_time(parse_json(line, file, number), file, number), file, number, table);
    }
  }
  if (number == 0) throw InputError(file, 1, "expected the header of a table of kernel times");
  return table;
}

TimesTable read_times(const std::filesystem::path& path) {
  return parse_times(read_file(path), path.string());
}

void TimeSamples::add(Program program) {
  each_op(program, [this](const Op& op, const OpSignature& signature) {
    if (op.measured_ns <= 0) return;
    Samples& samples = samples_[signature_text(signature)];
    samples.op = signature;
    samples.ns.push_back(op.measured_ns);
  });
}

std::map<std::string, KernelTime> TimeSamples::times() const {
  std::map<std::string, KernelTime> times;
  for (const auto& [signature, samples] : samples_) {
    std::vector<std::int64_t> ns = samples.ns;
    std::sort(ns.begin(), ns.end());
    times[signature] = {samples.op, ns[ns.size() / 2], ns.front(),
                        static_cast<std::int64_t>(ns.size())};
  }
  return times;
}

}  // namespace ferry
