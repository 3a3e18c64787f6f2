#include "formats/plan_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>

#include "formats/alloc_conf.h"
#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/file_kind.h"
#include "formats/json_fields.h"
#include "formats/layout.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

constexpr std::array<std::string_view, 3> kChoices = {"keep", "offload", "recompute"};

std::string member(std::string_view key, std::int64_t value) {
  return json_text(key) + ":" + std::to_string(value);
}

std::string entry_text(const PlanEntry& entry) {
  return "{\"pack\":" + std::to_string(entry.pack) + ",\"op\":" + json_text(entry.op) +
         ",\"dtype\":" + json_text(name(entry.layout.dtype)) +
         ",\"shape\":" + json_list(entry.layout.shape) +
         ",\"strides\":" + json_list(entry.layout.strides) +
         ",\"group\":" + std::to_string(entry.group) +
         ",\"decision\":" + json_text(name(entry.decision)) +
         (entry.segment ? ",\"segment\":" + std::to_string(*entry.segment) : "") + "}";
}

std::string segment_text(const PlanSegment& segment) {
  return "{\"name\":" + json_text(segment.name) +
         ",\"recompute\":" + (segment.recompute ? "true" : "false") + "}";
}

std::string inner_text(const std::vector<PlanSpan>& inner);

std::string span_text(const PlanSpan& span) {
  const std::vector<std::int64_t> keep(span.keep.begin(), span.keep.end());
  return "{\"first\":" + std::to_string(span.first) + ",\"first_op\":" + json_text(span.first_op) +
         ",\"last\":" + std::to_string(span.last) + ",\"last_op\":" + json_text(span.last_op) +
         ",\"keep\":" + json_list(keep) + inner_text(span.inner) + "}";
}

std::string inner_text(const std::vector<PlanSpan>& inner) {
  if (inner.empty()) return "";
  std::string text;
  for (const PlanSpan& span : inner) text += (text.empty() ? "" : ",") + span_text(span);
  return ",\"inner\":[" + text + "]";
}

// Writes one item to a line.
template <class T>
std::string list_text(const std::vector<T>& items, std::string (*text_of)(const T&)) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + text_of(items[i]);
  }
  return text + (items.empty() ? "]" : "\n  ]");
}

// Reads the members of one plan, each with its own line.
class PlanReader {
 public:
  PlanReader(std::string_view text, const std::string& file)
      : file_(file), json_(parse_json(text, file, 1, &lines_)) {}

  Plan read() {
    Fields top(json_, file_, 1, &lines_);
    const std::string kind = top.has("ferry") ? top.text("ferry") : "";
    if (kind != "plan") {
      const std::string expected = "expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}";
      top.fail(kind == "pipeline plan"
                   ? expected + "; this is a pipeline's, for `ferry train --stages`"
                   : expected);
    }
    if (top.integer("schema") != 1) top.expected("schema", "1");
    Plan plan;
    read_program(top.object("program"), plan);
    plan.hardware = top.text("hardware");
    plan.policy = top.text("policy");
    if (top.has("alloc_conf")) plan.alloc_conf = read_alloc_conf(top);
    read_options(top, plan);
    read_prediction(top.object("predicted"), plan.predicted);
    if (top.has("segments")) read_segments(top, plan);
    if (top.has("spans")) read_spans(top, plan);
    read_entries(top, plan);
    return plan;
  }

 private:
  std::string read_alloc_conf(Fields& top) {
    const std::string given = top.text("alloc_conf");
    try {
      return to_string(parse_alloc_conf(given, file_));
    } catch (const InputError&) {
      top.expected("alloc_conf", "options as in PYTORCH_CUDA_ALLOC_CONF");
    }
  }

  static void read_program(Fields program, Plan& plan) {
    plan.program = program.text("name");
    plan.program_digest = program.text("digest");
  }

  void read_options(Fields& top, Plan& plan) {
    Fields options = top.object("options");
    for (const auto& item : top.at("options").items()) {
      constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
      plan.options.emplace_back(item.key(), options.integer(item.key(), kLeast));
    }
  }

  static void read_prediction(Fields predicted, Prediction& prediction) {
    prediction = {.peak_bytes = predicted.integer("peak"),
                  .reserved_bytes = predicted.integer("reserved"),
                  .host_bytes = predicted.integer("host"),
                  .step_ns = predicted.integer("step_ns")};
  }

  // Reads the items of a list, each with its line.
  template <class Read>
  void read_list(Fields& top, const std::string& key, Read read) {
    const Json& items = top.at(key);
    if (!items.is_array()) top.expected(key, "a list");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_object()) top.expected(key, "a list of objects");
      Fields line(items[i], file_, lines_.line_of(key + "/" + std::to_string(i)));
      read(line);
    }
  }

  void read_segments(Fields& top, Plan& plan) {
    read_list(top, "segments", [&plan](Fields& line) {
      line.at("recompute");  // always written
      plan.segments.push_back({line.text("name"), line.flag("recompute", false)});
    });
  }

  void read_spans(Fields& top, Plan& plan) {
    read_list(top, "spans", [&plan](Fields& line) {
      if (!plan.segments.empty()) line.fail("a plan has spans or segments, not both");
      PlanSpan span = read_span(line);
      if (!plan.spans.empty() && span.first <= plan.spans.back().last) {
        line.expected("first", "an operator after the span before it");
      }
      read_inner(line, span, 1);
      plan.spans.push_back(std::move(span));
    });
  }

  // Reads a span without its inner spans.
  static PlanSpan read_span(Fields& line) {
    PlanSpan span;
    const auto place = [&line](const char* key) {
      return static_cast<std::uint64_t>(line.integer(key));
    };
    span.first = place("first");
    span.first_op = line.text("first_op");
    span.last = place("last");
    span.last_op = line.text("last_op");
    if (span.last < span.first) line.expected("last", "no operator before \"first\"");
    for (const std::int64_t kept : line.integers("keep")) {
      const auto op = static_cast<std::uint64_t>(kept);
      const bool follows = span.keep.empty() || op > span.keep.back();
      if (kept < 0 || op < span.first || op > span.last || !follows) {
        line.expected("keep", "operators of the span, in order");
      }
      span.keep.push_back(op);
    }
    return span;
  }

  // `depth` is the depth of the span around them.
  static void read_inner(Fields& around, PlanSpan& span, std::size_t depth) {
    if (!around.has("inner")) return;
    const Json& items = around.at("inner");
    if (!items.is_array()) around.expected("inner", "a list");
    if (depth == kSpanDepth) {
      around.expected("inner", "at most " + std::to_string(kSpanDepth) + " levels of spans");
    }
    for (const Json& item : items) {
      if (!item.is_object()) around.expected("inner", "a list of spans");
      Fields fields(item, around.file(), around.line());
      PlanSpan inner = read_span(fields);
      const std::uint64_t free = span.inner.empty() ? span.first : span.inner.back().last + 1;
      if (inner.first < free || inner.last > span.last) {
        around.expected("inner", "spans within the one around them, in order");
      }
      read_inner(fields, inner, depth + 1);
      span.inner.push_back(std::move(inner));
    }
  }

  void read_entries(Fields& top, Plan& plan) {
    std::map<std::uint64_t, PlanChoice> groups;
    std::map<std::optional<std::uint64_t>, std::uint64_t> packs;  // counts so far, by frame
    read_list(top, "entries", [&](Fields& line) {
      PlanEntry entry = read_entry(line, plan);
      const std::uint64_t next = packs[entry.segment]++;
      if (entry.pack != next) {
        line.expected("pack", std::to_string(next) + ": every pack has its entry");
      }
      if (entry.decision != PlanChoice::kRecompute) {
        const auto [group, fresh] = groups.try_emplace(entry.group, entry.decision);
        if (!fresh && group->second != entry.decision) {
          line.expected("decision", "one decision for all of group " + std::to_string(entry.group));
        }
      }
      plan.entries.push_back(std::move(entry));
    });
  }

  static PlanEntry read_entry(Fields& line, const Plan& plan) {
    PlanEntry entry;
    entry.pack = static_cast<std::uint64_t>(line.integer("pack"));
    entry.op = line.text("op");
    line.at("strides");  // always written
    entry.layout = line.layout();
    entry.layout.offset = 0;  // not a part of the plan
    entry.group = static_cast<std::uint64_t>(line.integer("group"));
    if (line.has("segment")) {
      entry.segment = static_cast<std::uint64_t>(line.integer("segment"));
      if (*entry.segment >= plan.segments.size() || !plan.segments[*entry.segment].recompute) {
        line.expected("segment", "a segment of the plan that is recomputed");
      }
    }
    const auto choices = std::span(kChoices).first(entry.segment ? 3 : 2);
    const auto choice = std::find(choices.begin(), choices.end(), line.text("decision"));
    if (choice == choices.end()) {
      line.expected("decision", entry.segment ? "\"keep\", \"offload\" or \"recompute\""
                                              : "\"keep\" or \"offload\"");
    }
    entry.decision = static_cast<PlanChoice>(choice - choices.begin());
    return entry;
  }

  const std::string& file_;
  JsonLines lines_;
  Json json_;
};

}  // namespace

std::string_view name(PlanChoice choice) { return kChoices[static_cast<std::size_t>(choice)]; }

std::string to_text(const Plan& plan) {
  std::string text = "{\n  \"ferry\": \"plan\",\n  \"schema\": 1,\n";
  text += "  \"program\": {\"name\":" + json_text(plan.program) +
          ",\"digest\":" + json_text(plan.program_digest) + "},\n";
  text += "  \"hardware\": " + json_text(plan.hardware) + ",\n";
  text += "  \"policy\": " + json_text(plan.policy) + ",\n";
  if (!plan.alloc_conf.empty()) {
    text += "  \"alloc_conf\": " + json_text(plan.alloc_conf) + ",\n";
  }
  text += "  \"options\": {";
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    text += (i == 0 ? "" : ",") + member(plan.options[i].first, plan.options[i].second);
  }
  const Prediction& predicted = plan.predicted;
  text += "},\n  \"predicted\": {" + member("peak", predicted.peak_bytes) + "," +
          member("reserved", predicted.reserved_bytes) + "," +
          member("host", predicted.host_bytes) + "," + member("step_ns", predicted.step_ns) +
          "},\n";
  if (!plan.segments.empty()) {
    text += "  \"segments\": " + list_text(plan.segments, segment_text) + ",\n";
  }
  if (!plan.spans.empty()) text += "  \"spans\": " + list_text(plan.spans, span_text) + ",\n";
  return text + "  \"entries\": " + list_text(plan.entries, entry_text) + "\n}\n";
}

void write_plan(const std::filesystem::path& path, const Plan& plan) {
  write_file(path, to_text(plan));
}

Plan parse_plan(std::string_view text, const std::string& file) {
  return PlanReader(text, file).read();
}

Plan read_plan(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string text = read_file(path);
  refuse_other_kinds(text, file, {FileKind::kPlan, FileKind::kPipelinePlan});
  return parse_plan(text, file);
}

}  // namespace ferry
